"""The machines by name and by ELF number, and what every machine's record must hold."""

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import get_args, get_type_hints

import pytest

from kinst.rewriter.arch.dissector import Dissector
from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.assemble import assemble
from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.frames.motions import frame_facts
from kinst.rewriter.liveness.effects import Effector, effector
from kinst.rewriter.standalone.code.trampoline import CodeGenerator, code_generator
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import Configuration
from kinst.runtime.machine.exception_model import ExceptionModel
from kinst.runtime.machine.learning.arch.registry import scratch_machine
from kinst.runtime.machine.system import System
from kinst.runtime.paging.registry import new_walker
from kinst.runtime.paging.walker import Walker
from kinst.runtime.trap.arch.emulator import Emulator
from kinst.runtime.trap.arch.registry import emulator, moved_trampoline, out_of_line_trampoline
from kinst.runtime.unwinding.arch.registry import stack_effects
from kinst.runtime.unwinding.unwind import StackEffects
from kinst.targets.arch.code_shape import CodeShape
from kinst.targets.arch.facts import ArchFacts, EngineFacts, JumpFacts, Syntax, UnwindFacts
from kinst.targets.arch.linux import LinuxFacts
from kinst.targets.arch.registry import ARCHES, NAMES, arch_by_elf_machine, arch_by_name
from kinst.targets.arch.relocations import RelocationFacts
from kinst.targets.errors import ImageError, UsageError
from kinst.targets.instruction import Reason
from kinst.targets.machines.registry import default_machine, machine_facts

RECORDS = (ArchFacts, UnwindFacts, EngineFacts, JumpFacts, Syntax, CodeShape, LinuxFacts, RelocationFacts)
EVERY = pytest.mark.parametrize("facts", ARCHES, ids=NAMES)


def values_of(record: ArchFacts) -> Iterator[object]:
    return (getattr(record, one.name) for one in fields(record))


def lacking(found: object, protocol: type) -> list[str]:
    """What a behaviour class lacks of what it answers."""
    return [name for name in vars(protocol) if not name.startswith("_") and not hasattr(found, name)]


@EVERY
def test_a_machine_is_found_by_name_and_by_number(facts: ArchFacts) -> None:
    assert arch_by_name(facts.name) is facts
    assert arch_by_elf_machine(facts.elf_machine) is facts


def test_an_unknown_machine_is_named() -> None:
    with pytest.raises(UsageError, match="vax: no such machine; there are amd64, arm64, riscv64"):
        arch_by_name("vax")
    with pytest.raises(ImageError, match="ELF machine 8: not supported"):
        arch_by_elf_machine(8)


@pytest.mark.parametrize("record", RECORDS, ids=[record.__name__ for record in RECORDS])
def test_a_record_cannot_have_a_hole(record: type) -> None:
    """What has no default is given by every machine: None, or nothing in it, is an answer of its own."""
    assert [
        one.name for one in fields(record) if one.default is not MISSING or one.default_factory is not MISSING
    ] == []


@EVERY
def test_none_is_an_answer_only_where_the_record_says_so(facts: ArchFacts) -> None:
    for record in (facts, *(value for value in values_of(facts) if is_dataclass(value))):
        kinds = get_type_hints(type(record))
        missing = [one.name for one in fields(record) if getattr(record, one.name) is None]
        assert [name for name in missing if type(None) not in get_args(kinds[name])] == []


@EVERY
def test_every_behaviour_of_a_machine_is_found(facts: ArchFacts) -> None:
    assert dissector(facts).facts is facts
    assert frame_facts(facts).forms
    assert emulator(facts).facts is facts
    assert (moved_trampoline(facts) is None) == (facts.return_breakpoint is not None)
    assert (out_of_line_trampoline(facts) is None) == (not facts.out_of_line)
    assert lacking(dissector(facts), Dissector) == []
    assert lacking(effector(facts), Effector) == []
    assert lacking(code_generator(facts), CodeGenerator) == []
    assert lacking(emulator(facts), Emulator) == []
    assert lacking(stack_effects(facts), StackEffects) == []
    assert lacking(new_walker(facts), Walker) == []
    assert scratch_machine(facts).result in facts.registers
    board = machine_facts(default_machine(facts.name))
    assert lacking(System(board, board_of(board.name), Configuration()).exceptions, ExceptionModel) == []


@EVERY
def test_a_machine_has_vectors(facts: ArchFacts) -> None:
    """What its instructions are and do, as tables: the tests of dissector and emulator read them."""
    assert import_module(f"tests.vectors.{facts.name}")


@EVERY
def test_a_machine_is_armed_at_instructions_of_every_size(facts: ArchFacts) -> None:
    armed = facts.engine.armed
    assert armed.keys() == facts.breakpoints.keys()
    assert all(len(code) <= size for size, code in armed.items())


@EVERY
def test_names_in_the_record_are_names(facts: ArchFacts) -> None:
    """Of capstone's and keystone's constants, of reasons, of registers; the engine's are used in `test_engine`."""
    assert [line.text.removeprefix("c.") for line in disassemble(facts, facts.nops[0], 0)] == ["nop"]
    assert facts.keystone is None or assemble(facts, "nop") in facts.nops
    assert all(table.reason in Reason.__members__ for table in facts.linux.tables)
    assert facts.c_symbols.keys() <= set(facts.registers)


@EVERY
def test_a_call_leaves_its_return_address_in_one_place(facts: ArchFacts) -> None:
    assert (facts.link_register is None) == (facts.pushed_return > 0)
    assert facts.unwind.dwarf_registers.index(facts.stack_pointer) not in facts.unwind.preserved
    assert facts.unwind.dwarf_registers.index(facts.frame_pointer) in facts.unwind.preserved


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
