"""Registers that nobody models: what a guest reads there, and what is remembered of it."""

from dataclasses import replace
from typing import cast

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.physical.frames import PAGE, UNMODELLED
from kinst.runtime.machine.physical.unmodelled import Unmodelled
from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access
from kinst.targets.image import Image
from kinst.targets.machines.machine import MachineFacts, StartFacts
from kinst.targets.machines.registers import RangeFacts, Reads, RegisterFacts, Rule
from kinst.targets.machines.registry import machine_facts
from tests.runtime.machine.riscv_words import A0, A1, S2, S3, S4, T0, code, li, load, store
from tests.runtime.machine.test_riscv64_machine import CODE, POWER_OFF

AT = 0x5000_0000


def board(*ranges: RangeFacts, unnamed: Rule | None = None) -> MachineFacts:
    return replace(
        machine_facts("virt-riscv64"),
        board="plain-riscv64",
        start=StartFacts("M", {}),
        ranges=ranges,
        unnamed=unnamed,
    )


def registers(*ranges: RangeFacts, unnamed: Rule | None = None) -> Unmodelled:
    return Unmodelled(board(*ranges, unnamed=unnamed), lambda: CODE, lambda: None)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(Reads.CONSTANT, 7), [7, 7, 7]),
        (Rule(Reads.LAST), [0, 0, 0]),
        (Rule(Reads.LAST, 1, bits=0x10, after=2), [1, 1, 0x11]),
        (Rule(Reads.LAST, 3, bits=0x10, clear=1, after=1), [3, 0x12, 0x12]),
        (Rule(Reads.TOGGLE, 5, bits=1), [5, 4, 5]),
        (Rule(Reads.COUNT, 0xFFFF_FFFF, step=2), [0xFFFF_FFFF, 1, 3]),
        (Rule(Reads.LIST, values=(3, 1)), [3, 1, 1]),
    ],
)
def test_rules(rule: Rule, expected: list[int]) -> None:
    unmodelled = registers(RangeFacts("r", AT, PAGE, rule))
    assert [unmodelled.read(AT + 8, 4) for _ in expected] == expected


def test_what_was_written_is_read_by_parts() -> None:
    unmodelled = registers(RangeFacts("r", AT, PAGE, Rule(), (RegisterFacts("WIDE", 0x10, 8, Rule()),)))
    unmodelled.write(AT + 0x10, 8, 0x1122_3344_5566_7788)
    unmodelled.write(AT + 0x11, 1, 0xAA)
    unmodelled.write(AT + 0x20, 8, 1 << 32 | 2)
    assert unmodelled.read(AT + 0x10, 8) == 0x1122_3344_5566_AA88
    assert (unmodelled.read(AT + 0x14, 4), unmodelled.read(AT + 0x12, 2)) == (0x1122_3344, 0x5566)
    assert (unmodelled.read(AT + 0x24, 4), unmodelled.read(AT + 0x20, 4)) == (1, 2)
    assert [(one.name, one.group) for one in unmodelled.touched] == [("r.WIDE", "r"), ("r+0x20", "r"), ("r+0x24", "r")]


def test_pages_are_known_by_what_they_stand_for() -> None:
    fault = RangeFacts("f", AT + PAGE, PAGE, Rule(Reads.FAULT))
    unmodelled = registers(RangeFacts("r", AT, 0x10, Rule(Reads.CONSTANT, 9)), fault)
    window = unmodelled.frame(AT + 4, Access.READ)
    assert window == UNMODELLED + 4
    assert unmodelled.real(window) == AT + 4
    assert unmodelled.read(window, 4) == 9
    assert unmodelled.frame(AT + PAGE, Access.READ) is None
    assert unmodelled.frame(AT, Access.FETCH) is None
    assert unmodelled.frame(AT + 0x100_0000, Access.READ) is None
    assert registers(unnamed=Rule()).frame(AT + 0x100_0000, Access.READ) is not None


def run(program: tuple[int, ...], facts: MachineFacts) -> System:
    system = System(facts, board_of(facts.board), Configuration(clock=ClockKind.ICOUNT))
    system.memory.write(CODE, code(*program, *POWER_OFF))
    system.board.start(Loaded(cast("Image", None), 0, CODE, ((CODE, CODE, PAGE),)))
    assert system.run(timeout=1_000_000_000) is End.POWER_OFF
    return system


def test_a_guest_reads_and_writes_them() -> None:
    facts = board(RangeFacts("clock", AT, PAGE, Rule(), (RegisterFacts("PLL", 4, 4, Rule(Reads.CONSTANT, 0x55)),)))
    program = (*li(A0, AT), *li(A1, 0x123), store(A1, A0, 8, size=2), load(S2, A0, 4, size=2), load(S3, A0, 8, size=2))
    system = run(program, facts)
    found = [system.current.registers.get(name) for name in ("s2", "s3")]
    assert found == [0x55, 0x123]
    assert [(one.name, one.reads, one.writes) for one in system.unmodelled.touched] == [
        ("clock.PLL", 1, 0),
        ("clock+0x8", 1, 1),
    ]
    assert all(CODE <= place < CODE + PAGE for one in system.unmodelled.touched for place in one.places)


def test_they_share_pages_with_devices() -> None:
    """The UART has 0x100 bytes of its page."""
    facts = board(RangeFacts("behind", 0x1000_0200, 0x10, Rule(Reads.CONSTANT, 0x66)))
    system = run((*li(A0, 0x1000_0200), load(S2, A0, 0, size=2), *li(T0, 0x1000_0005), load(S4, T0, 0, size=0)), facts)
    assert system.current.registers.get("s2") == 0x66
    assert system.current.registers.get("s4") == 0x60  # LSR: the transmitter is empty


def test_without_rules_nothing_is_there() -> None:
    system = System(machine_facts("virt-riscv64"), board_of("virt-riscv64"), Configuration(clock=ClockKind.ICOUNT))
    assert not system.unmodelled.is_used
    assert system.unmodelled.frame(AT, Access.READ) is None
