"""Stacks and names of user mode: programs whose files are known, wherever they lie, and others by frame pointers."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.clauses.environment import Stack, SymbolName
from kinst.runtime.tracing.host.contract import blank_firing
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.runtime.unwinding.user_programs import ProgramFile, UserPrograms
from kinst.runtime.unwinding.user_stacks import UserStackWalker
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image as elf_image
from tests.runtime.unwinding.memories import NoMemory, Words
from tests.runtime.unwinding.shadow import ShadowStack
from tests.system.cases import BY_NAME
from tests.system.runs import let_go

MACHINES = ("amd64", "arm64", "riscv64")
HIGH = 0x7FFC_0000_0000  # where stacks are


def firing_of(machine: str, **registers: int) -> Firing:
    regs = [registers.get(name, 0) for name in arch_by_name(machine).registers]
    return blank_firing(TrapFrame(regs, lambda _a, _s: 0, lambda _a, _s, _v: None, lambda _n, _v: None), 0, 0)


def registers(firing: Firing) -> Sequence[int]:
    return firing.regs


@pytest.mark.parametrize("machine", MACHINES)
def test_a_known_programs_stack_is_that_of_its_code(machine: str) -> None:
    """The sample kernel serves as the program: what it has on its stack is known from watching every call."""
    case, found = BY_NAME[f"kernel-{machine}"], Counter[str]()
    with open_image(case.path) as image:
        trace = image.trace(machine=Machine(board=case.machine, clock="icount"))
    guest = trace.guest
    system, memory = guest.system, guest.surroundings.memory
    programs = UserPrograms([ProgramFile(case.path)], system.arch, memory)
    walker = UserStackWalker(system.arch, memory, registers, programs)

    def look(address: int, callers: list[int]) -> None:
        system.engine.frame.read()
        firing = system.trap.firing
        system.engine.frame.regs[system.arch.pc] = address
        got, expected = walker.stack(firing, 64), (address, *callers)
        found["right" if got[: len(expected)] == expected else f"{address:#x}: {got}, not {expected}"] += 1
        found["caller"] += not callers or walker.caller(firing) == callers[0]
        assert walker.stack(firing, 2) == got[:2]

    shadow = ShadowStack(guest, guest.prepared.program(), 400, look)
    let_go(trace, case.until, case.asks)
    assert shadow.error is None, shadow.error
    assert found.pop("caller") == found["right"] == found.total() > 800, found


class Mapped(NoMemory):
    """A file whose bytes lie so much higher than it was linked, in the way of a position-independent program."""

    def __init__(self, path: Path, moved: int) -> None:
        self._data, self._moved = path.read_bytes(), moved

    def read(self, address: int, size: int) -> bytes:
        at = address - self._moved
        if not 0 <= at < len(self._data):
            raise Fault(FaultKind.BADADDR, address)
        return self._data[at : at + size].ljust(size, b"\0")


@pytest.mark.parametrize("machine", MACHINES)
def test_a_program_is_found_where_it_lies(machine: str) -> None:
    case, arch = BY_NAME[f"kernel-{machine}"], arch_by_name(machine)
    image, moved = elf_image(case.path), 0x7F12_3456_7000
    start = image.symbols.address_of("printk")
    offset = None if start is None else image.offset_of(start)
    assert start is not None
    assert offset is not None
    programs = UserPrograms([ProgramFile(case.path)], arch, Mapped(case.path, moved))
    there = offset + moved
    printk = f"kernel-{machine}`printk"
    assert programs.symbol(there + 4, "ufunc", 7) == SymbolName("ufunc", start, 0, printk)
    assert programs.symbol(there + 4, "uaddr", 7) == SymbolName("uaddr", start + 4, 0, f"{printk}+0x4")
    assert programs.symbol(0x1000, "usym", 7) == SymbolName("usym", 0x1000, 7, "0x1000")
    assert programs.stack((there, there + 4), 5, 7) == Stack(
        (start, start + 4), 5, is_user=True, names=(printk, f"{printk}+0x4")
    )
    assert programs.stack((there, 0x1000), 5, 7) == Stack(
        (start, 0x1000), 5, is_user=True, process=7, names=(printk, "0x1000")
    )
    twice = UserPrograms([ProgramFile(case.path)] * 2, arch, Mapped(case.path, moved))
    assert twice.symbol(there, "usym", 7).name == f"{there:#x}"


def test_a_program_is_for_the_guests_machine() -> None:
    with pytest.raises(ImageError, match="is for arm64, and the guest is amd64"):
        UserPrograms([ProgramFile(BY_NAME["kernel-arm64"].path)], arch_by_name("amd64"), NoMemory())


@pytest.mark.parametrize(
    ("machine", "pointer", "stack", "pc", "words"),
    [
        ("amd64", "rbp", "rsp", "rip", (0, 8)),
        ("arm64", "x29", "sp", "pc", (0, 8)),
        ("riscv64", "s0", "sp", "pc", (-16, -8)),
    ],
)
def test_other_code_is_walked_by_its_frame_pointers(
    machine: str, pointer: str, stack: str, pc: str, words: tuple[int, int]
) -> None:
    link, returns = words
    frames, content = [HIGH + 0x7000, HIGH + 0x7100, HIGH + 0x7200], dict[int, int]()
    for at, following, address in zip(
        frames, [HIGH + 0x7100, HIGH + 0x7200, HIGH + 0x6000], [0x401000, 0x402000, 0x403000], strict=True
    ):
        content |= {at + link: following, at + returns: address}
    arch, memory = arch_by_name(machine), Words(content)
    walker = UserStackWalker(arch, memory, registers, UserPrograms([], arch, memory))
    firing = firing_of(machine, **{pointer: HIGH + 0x7000, stack: HIGH + 0x6F00, pc: 0x400000})
    assert walker.stack(firing, 20) == (0x400000, 0x401000, 0x402000, 0x403000)  # then the stack would shrink
    assert walker.stack(firing, 2) == (0x400000, 0x401000)
    assert walker.stack(firing, 0) == ()
    assert walker.caller(firing) == 0x401000
    nowhere = UserStackWalker(arch, memory, lambda _firing: None, UserPrograms([], arch, memory))
    assert (nowhere.stack(firing, 20), nowhere.caller(firing)) == ((), 0)
