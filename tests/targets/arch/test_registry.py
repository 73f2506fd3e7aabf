"""The machines by name and by ELF number, and what every machine's record must hold."""

import pytest

from kinst.rewriter.arch.registry import dissector
from kinst.runtime.trap.arch.registry import emulator
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import ARCHES, NAMES, arch_by_elf_machine, arch_by_name
from kinst.targets.errors import ImageError, UsageError

EVERY = pytest.mark.parametrize("facts", ARCHES, ids=NAMES)


@EVERY
def test_a_machine_is_found_by_name_and_by_number(facts: ArchFacts) -> None:
    assert arch_by_name(facts.name) is facts
    assert arch_by_elf_machine(facts.elf_machine) is facts


def test_an_unknown_machine_is_named() -> None:
    with pytest.raises(UsageError, match="vax: no such machine; there are amd64, arm64, riscv64"):
        arch_by_name("vax")
    with pytest.raises(ImageError, match="ELF machine 8: not supported"):
        arch_by_elf_machine(8)


@EVERY
def test_a_machine_has_a_dissector_and_an_emulator(facts: ArchFacts) -> None:
    assert dissector(facts).facts is facts
    assert emulator(facts).facts is facts


@EVERY
def test_register_indexes_lie_in_the_frame(facts: ArchFacts) -> None:
    count = len(facts.registers)
    link = [] if facts.link_register is None else [facts.link_register]
    chosen = [facts.pc, facts.stack_pointer, facts.frame_pointer, facts.return_value, *facts.arguments, *link]

    assert len(set(facts.registers)) == count
    assert all(0 <= index < count for index in (*chosen, *facts.register_names.values()))
    assert facts.registers[facts.stack_pointer] in ("rsp", "sp")


@EVERY
def test_a_breakpoint_fits_its_instruction_and_its_slot(facts: ArchFacts) -> None:
    for size, breakpoint_bytes in facts.breakpoints.items():
        assert len(breakpoint_bytes) <= size
    assert facts.slot_size % max(len(code) for code in facts.breakpoints.values()) == 0
    assert facts.trampoline_window & (facts.trampoline_window - 1) == 0


@EVERY
def test_kinds_fit_into_a_byte(facts: ArchFacts) -> None:
    assert all(0 <= kind < 256 for kind in facts.kinds)
