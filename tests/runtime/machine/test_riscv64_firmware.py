"""What virt-riscv64 is for a kernel that it starts itself, beside OpenSBI on the same machine, register by register."""

from typing import cast

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.devices.riscv.sbi import Extension
from kinst.runtime.machine.exceptions.riscv64 import SUPERVISOR, machine_mode
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.targets.image import Image, open_image
from kinst.targets.machines.registry import machine_facts
from tests.images import real_image
from tests.runtime.machine.riscv_words import A0, A1, A2, A6, A7, ECALL, ZERO, addi, code, jal, la, li
from tests.runtime.machine.test_riscv64_supervisor import CODE, LEFT, SECOND

STAY = jal(ZERO, 0)
ARGUMENT = 0x123
# The first hart starts the others at SECOND: it is OpenSBI's choice which one it is, and starting itself fails.
STARTS = tuple(
    word
    for number in range(2)
    for word in (
        *(*li(A7, Extension.HSM), addi(A6, ZERO, 0), addi(A0, ZERO, number)),
        *(*la(A1, SECOND), addi(A2, ZERO, ARGUMENT), ECALL),
    )
)
FIRST_STAYS = CODE + 4 * len(STARTS)
NAMES = (*LEFT, "stvec", "misa", "a0", "a1")


def harts(firmware: str | None) -> dict[int, tuple[int, dict[str, int]]]:
    """By where they are: number and registers of two harts, once both execute nothing but `STAY` in S mode."""
    facts = machine_facts("virt-riscv64")
    system = System(facts, board_of("virt-riscv64"), Configuration(cpus=2, clock=ClockKind.ICOUNT))
    loaded = Loaded(cast("Image", None), 0, CODE, ((CODE, CODE, 0x1000),))
    if firmware is not None:
        loaded = load_image(open_image(real_image(firmware)), facts, system.memory)
    system.memory.write(CODE, code(*STARTS, STAY))
    system.memory.write(SECOND, code(STAY))
    system.board.start(loaded)
    arrived: set[int] = set()

    def look() -> None:
        if system.current.registers.get("priv") == SUPERVISOR and system.engine.pc() in (SECOND, FIRST_STAYS):
            arrived.add(system.current.number)
        if len(arrived) == len(system.cpus):
            system.finish(End.STOPPED)

    assert system.run(10_000_000_000, hooks=MachineHooks(after_turn=look)) is End.STOPPED
    found = {}
    for cpu in system.cpus:
        system.show(cpu.number)
        with machine_mode(cpu.registers):
            found[cpu.registers.get("pc")] = cpu.number, {name: cpu.registers.get(name) for name in NAMES}
    return found


@pytest.mark.long
@pytest.mark.parametrize("firmware", ["opensbi-1.1", "opensbi-1.6"])
def test_harts_are_as_opensbi_leaves_them(firmware: str) -> None:
    """But for a0 and a1, which are a hart's number and its argument, or the answer of the first hart's last call."""
    ours, theirs = harts(None), harts(firmware)
    assert ours.keys() == theirs.keys() == {SECOND, FIRST_STAYS}
    for found in (ours, theirs):
        number, registers = found[SECOND]
        assert (registers["a0"], registers["a1"]) == (number, ARGUMENT)
    for place, (_, registers) in theirs.items():
        assert {name: value for name, value in ours[place][1].items() if name not in ("a0", "a1")} == {
            name: value for name, value in registers.items() if name not in ("a0", "a1")
        }
