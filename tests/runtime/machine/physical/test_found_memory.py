"""Pages without a name that a guest uses as memory become RAM, and the guest sees no difference."""

import random
from dataclasses import replace
from typing import cast

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.machine.system import System
from kinst.targets.image import Image
from kinst.targets.machines.machine import MachineFacts
from kinst.targets.machines.registers import RangeFacts, Reads, Rule
from tests.runtime.machine.physical.test_unmodelled import AT, board
from tests.runtime.machine.riscv_words import A0, A1, S2, S3, T0, ZERO, addi, bne, code, jalr, la, li, load, store, xor
from tests.runtime.machine.test_riscv64_machine import CODE, POWER_OFF

DELAY = (*li(T0, 200_000), addi(T0, T0, -1), bne(T0, ZERO, -4))  # the engine is left meanwhile
RET = 0x8067
WORDS = 160


def run(program: tuple[int, ...], facts: MachineFacts, *, is_watched: bool = False) -> System:
    system = System(facts, board_of(facts.board), Configuration(clock=ClockKind.ICOUNT))
    if is_watched:
        system.accesses.watch(lambda _access: None)
    system.memory.write(CODE, code(*program, *POWER_OFF))
    system.board.start(Loaded(cast("Image", None), 0, CODE, ((CODE, CODE, PAGE),)))
    assert system.run(timeout=1_000_000_000) is End.POWER_OFF
    return system


def filled(start: int) -> tuple[int, ...]:
    """Writes words of a page."""
    return (*la(A0, start), *(store(A0, A0, 4 * number, size=2) for number in range(WORDS)))


def drawn(draw: random.Random, count: int) -> tuple[int, ...]:
    """Loads and stores of two pages; what is loaded goes into s2."""
    words: list[int] = []
    for _ in range(count):
        size = draw.randrange(4)
        offset = draw.randrange(0, 0x7F8, 1 << size)
        words += la(A0, AT + draw.choice((0, 0x800, PAGE, PAGE + 0x800)))
        if draw.random() < 0.6:
            words += (*li(A1, draw.getrandbits(32)), store(A1, A0, offset, size=size))
        else:
            words += (load(S3, A0, offset, size=size), xor(S2, S2, S3), addi(S2, S2, 1))
    return tuple(words)


@pytest.mark.parametrize("seed", range(4))
def test_a_guest_sees_no_difference(seed: int) -> None:
    """While accesses are watched nothing becomes RAM."""
    draw = random.Random(seed)
    program = (*drawn(draw, 300), *filled(AT), *DELAY, *drawn(draw, 100), *filled(AT + PAGE), *DELAY, *drawn(draw, 300))
    ram, rules = (run(program, board(unnamed=Rule()), is_watched=is_watched) for is_watched in (False, True))
    assert [(one.start, one.stop) for one in ram.found_memory.found] == [(AT, AT + 2 * PAGE)]
    assert not rules.found_memory.found
    assert ram.current.registers.get("s2") == rules.current.registers.get("s2") != 0
    left = b"".join(rules.unmodelled.at(AT + at).value.to_bytes(4, "little") for at in range(0, 2 * PAGE, 4))
    assert ram.memory.read(AT, PAGE) + ram.memory.read(AT + PAGE, PAGE) == left


def test_what_was_copied_there_can_be_executed() -> None:
    copied = (*li(A1, 0x77), RET)
    there = tuple(word for at, one in enumerate(copied) for word in (*li(A1, one), store(A1, A0, 4 * at, size=2)))
    system = run((*filled(AT), *there, *DELAY, jalr(1, A0, 0), addi(S2, A1, 0)), board(unnamed=Rule()))
    assert system.current.registers.get("s2") == 0x77


def test_a_range_that_grows_doubles() -> None:
    pages = range(9)
    program = [word for page in pages for word in (*filled(AT + page * PAGE), *DELAY)]
    system = run(tuple(program), board(unnamed=Rule()))
    assert [(one.start, one.stop) for one in system.found_memory.found] == [(AT, AT + 16 * PAGE)]
    assert len([region for region in system.memory.regions if AT <= region.base < AT + 16 * PAGE]) == 5


@pytest.mark.parametrize(
    "facts",
    [
        board(RangeFacts("r", AT + 0x800, 4, Rule()), unnamed=Rule()),
        board(RangeFacts("r", AT, PAGE, Rule())),
        board(unnamed=Rule(bits=1)),
        board(unnamed=Rule(Reads.COUNT)),
    ],
)
def test_registers_stay_registers(facts: MachineFacts) -> None:
    """What has a name, and what reads as anything but what was written."""
    assert not run((*filled(AT), *DELAY), facts).found_memory.found


def test_a_range_does_not_grow_over_what_has_a_name() -> None:
    """The fourth page would be taken with the third one, but for the register in it."""
    named = RangeFacts("r", AT + 3 * PAGE + 8, 4, Rule(Reads.CONSTANT, 7))
    pages = (word for page in range(3) for word in (*filled(AT + page * PAGE), *DELAY))
    program = (*pages, *la(A0, AT + 3 * PAGE), load(S2, A0, 8, size=2))
    system = run(program, board(named, unnamed=Rule()))
    assert system.current.registers.get("s2") == 7
    assert [(one.start, one.stop) for one in system.found_memory.found] == [(AT, AT + 3 * PAGE)]


def test_a_page_with_a_device_in_it_stays_registers() -> None:
    facts = board(unnamed=Rule())
    moved = replace(facts.devices["rtc"], address=AT + 0x800, size=0x100)
    facts = replace(facts, devices={**facts.devices, "rtc": moved})
    system = run((*filled(AT), *DELAY, *la(A0, AT), load(S2, A0, 8, size=2)), facts)
    assert system.current.registers.get("s2") == AT
    assert not system.found_memory.found


def test_devices_nearby_stay_what_they_are() -> None:
    """The UART of the board is at the page before."""
    first = 0x1000_0000 - 2 * PAGE
    program = (*filled(first), *DELAY, *filled(first + PAGE), *DELAY, *la(A0, 0x1000_0005), load(S2, A0, 0, size=0))
    system = run(program, board(unnamed=Rule()))
    assert system.current.registers.get("s2") == 0x60
    assert [(one.start, one.stop) for one in system.found_memory.found] == [(first, first + 2 * PAGE)]
