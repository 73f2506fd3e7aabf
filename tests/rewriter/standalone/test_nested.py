"""A trampoline that an interrupt's handler leaves at any instruction, and another one that the handler runs."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import unicorn

from kinst.rewriter.arch.arm64 import DISSECTOR as ARM64_DISSECTOR
from kinst.rewriter.arch.riscv64 import DISSECTOR as RISCV64_DISSECTOR
from kinst.rewriter.liveness.effects import effector
from kinst.rewriter.standalone.code.trampoline import Register, code_generator
from kinst.targets.standalone import RING_HEAD, WORD
from tests.rewriter.standalone.displaced import Machine, Place, covered
from tests.rewriter.standalone.single import Count, Record, trampoline_of
from tests.runtime.trap.arch.risc_unicorn import ARM64_MODEL, RISCV64_MODEL

SIZE = 1 << 20
FIRST, SECOND = Place(0x1000, 0x2000, 0x8000, 0), Place(0x1800, 0x3000, 0x8000, 0)
STACK, ARGUMENT = 0xF000, 10  # a register
VALUE, OTHER = 30, 77
MACHINES = {
    dissector.facts.name: Machine(model, dissector, effector(dissector.facts), code_generator(dissector.facts), 0)
    for model, dissector in ((ARM64_MODEL, ARM64_DISSECTOR), (RISCV64_MODEL, RISCV64_DISSECTOR))
}
TASKS: dict[str, list[Count | Record]] = {
    "count": [Count(FIRST.cells), Count(FIRST.cells)],
    "record": [Record(FIRST.cells, 3, 3 * WORD, site, (Register(ARGUMENT),)) for site in (5, 6)],
}


@dataclass(frozen=True)
class Guest:
    """Two sites that do nothing, and their trampolines."""

    machine: Machine
    trampolines: Sequence[bytes]

    def interrupted(self, after: int) -> Sequence[int] | None:
        """Words of memory, if the first one was interrupted after so many instructions; None: it had come to its end.
        Registers are as they were."""
        model, facts = self.machine.model, self.machine.dissector.facts
        cpu = unicorn.Uc(model.arch, model.mode)
        cpu.mem_map(0, SIZE)
        for place, code in zip((FIRST, SECOND), self.trampolines, strict=True):
            cpu.mem_write(place.trampoline, code)
        general, pc = [*model.general[: facts.pc]], model.general[facts.pc]
        values = [0 if facts.registers[number] == "zero" else VALUE + number for number in range(len(general))]
        values[facts.stack_pointer], values[ARGUMENT] = STACK, VALUE
        for register, value in zip(general, values, strict=True):
            cpu.reg_write(register, value)
        ends = [place.site + facts.instruction_alignment for place in (FIRST, SECOND)]
        cpu.emu_start(FIRST.trampoline, ends[0], count=after)
        at, kept = cpu.reg_read(pc), cpu.context_save()
        cpu.reg_write(general[ARGUMENT], OTHER)
        cpu.emu_start(SECOND.trampoline, ends[1])
        cpu.context_restore(kept)
        if at == ends[0]:
            return None
        cpu.emu_start(at, ends[0])
        assert [cpu.reg_read(register) for register in general] == values
        words: Sequence[int] = struct.unpack("<32Q", cpu.mem_read(FIRST.cells, 32 * WORD))
        return words


def guest(name: str, action: str) -> Guest:
    machine, made = MACHINES[name], []
    nop = machine.dissector.facts.nops[0]
    for place, task in zip((FIRST, SECOND), TASKS[action], strict=True):
        group = covered(machine, nop, place, 0, [task], has_stack=True)
        assert group is not None
        made.append(trampoline_of(machine.generator, group, place.trampoline))
    return Guest(machine, made)


@pytest.mark.parametrize("name", MACHINES)
def test_both_are_counted(name: str) -> None:
    one, after = guest(name, "count"), 1
    while (words := one.interrupted(after)) is not None:
        assert words[0] == 2
        after += 1
    assert after > 8


@pytest.mark.parametrize("name", MACHINES)
def test_both_are_recorded(name: str) -> None:
    """Which is the first depends on when the interrupt came."""
    one, after, first = guest(name, "record"), 1, set()
    while (words := one.interrupted(after)) is not None:
        assert words[0] == 2
        at = RING_HEAD // WORD
        records = [words[at + row * 3 : at + row * 3 + 3] for row in range(2)]
        assert [ticket for ticket, _, _ in records] == [1, 2]
        assert {site: value for _, site, value in records} == {5: VALUE, 6: OTHER}
        first.add(records[0][1])
        after += 1
    assert first == {5, 6}
