"""What trampolines of amd64 read of memory, in Unicorn: Linux's current task, and what is surely there of a stack."""

import random
from collections.abc import Sequence

import pytest

from kinst.rewriter.standalone.code.parts import CURRENT, PER_CPU
from kinst.rewriter.standalone.code.trampoline import (
    Behind,
    Clock,
    Cpu,
    Current,
    Member,
    Register,
    Stack,
    Word,
    width,
)
from kinst.targets.arch.amd64 import GENERAL, RBX, RCX, RSP, Kind
from kinst.targets.instruction import Flow
from kinst.targets.standalone import RING_HEAD, WORD
from tests.rewriter.standalone.amd64_guest import Guest, State, drawn
from tests.rewriter.standalone.amd64_runs import APART, EVERYTHING, GENERATOR, HELD, Moved
from tests.rewriter.standalone.single import Covered, Record, trampoline_of

SITE = 0x40_1000
RING = SITE + 2 * APART
GDT, TABLE, DATA, TASK = 0x7000_0000, 0x4100_0000, 0x7100_0000, 0xFFFF_8881_0020_0000
NODE, CPUS = 15, 4
VARIABLE = {False: 0x1_F040, True: 0x4200_0040}  # in a CPU's own data; linked with the rest, 0x4200_0000 from them
START = {False: 0, True: 0x4200_0000}
SIZE = 0x4000
OFFSET = 0x18


def site(words: Sequence[Word], dead: int, *, has_stack: bool = True) -> Covered:
    stride = WORD * (2 + sum(map(width, words)))
    task = Record(RING, 0, stride, 7, tuple(words))
    return Covered(SITE, b"\x55", 0, Kind.PUSH, Flow.NEXT, dead & ~HELD, has_stack, task)


def run(one: Covered, guest: Guest, state: State, *, is_linked: bool = False) -> list[int]:
    """The words of the record."""
    assert isinstance(one.task, Record)
    more = {PER_CPU: TABLE, CURRENT: VARIABLE[is_linked]}
    trampoline = trampoline_of(GENERATOR, [one], SITE + APART, more)
    guest.write(SITE + APART, trampoline)
    guest.write(RING, bytes(RING_HEAD + 2 * one.task.stride))
    end = guest.run(state, range(SITE + APART, SITE + APART + len(trampoline)), 3000)
    assert (end.pc, guest.fault) == (SITE + 1, "")
    popped = State({**end.values, RSP: end.values[RSP] + WORD}, end.pc)
    assert popped.differs(state) & ~one.dead == 0
    assert guest.word(RING + RING_HEAD) == 1
    start = RING + RING_HEAD + 2 * WORD
    return [guest.word(start + at) for at in range(0, one.task.stride - 2 * WORD, WORD)]


def linux(cpu: int, *, is_linked: bool = False) -> Guest:
    """A guest with per-CPU data, and a task on that CPU."""
    guest = Guest({})
    guest.describe(GDT, NODE, cpu | 3 << 12)  # on node 3
    for number in range(CPUS):
        own = DATA + 0x10_0000 * number
        guest.write(TABLE + WORD * number, (own - START[is_linked]).to_bytes(WORD, "little"))
        variable = own + VARIABLE[is_linked] - START[is_linked]
        guest.write(variable, (TASK + 0x1000 * number).to_bytes(WORD, "little"))
    return guest


@pytest.mark.parametrize("dead", [0, EVERYTHING], ids=["nothing dead", "all dead"])
@pytest.mark.parametrize("is_linked", [False, True], ids=["from 0", "linked"])
def test_words_of_the_current_task(*, dead: int, is_linked: bool) -> None:
    choose, current = random.Random(1), Current(is_linked)
    words = (Clock(), current, Member(current, 0x768), Register(RCX), Member(current, 8), Register(RSP))
    for cpu in range(CPUS):
        guest, task = linux(cpu, is_linked=is_linked), TASK + 0x1000 * cpu
        state = drawn(choose, SITE + APART)
        found = run(site(words, dead), guest, state, is_linked=is_linked)
        kept = state.values[RCX], state.values[RSP]
        assert found[1:] == [task, guest.word(task + 0x768), kept[0], guest.word(task + 8), kept[1]]


@pytest.mark.parametrize("dead", [0, EVERYTHING], ids=["nothing dead", "all dead"])
@pytest.mark.parametrize("offset", [0, 0x78, 0x3F58])
def test_words_behind_a_pointer_of_the_task(dead: int, offset: int) -> None:
    base, guest = 0xFFFF_C900_0000_0000, linux(2)
    guest.write(TASK + 0x2000 + OFFSET, base.to_bytes(WORD, "little"))
    state = drawn(random.Random(5), SITE + APART)
    found = run(site((Behind(Member(Current(), OFFSET), offset), Register(RCX)), dead), guest, state)
    assert found == [guest.word(base + offset), state.values[RCX]]


def test_before_there_are_tasks_all_words_of_them_are_0() -> None:
    guest = Guest({})  # whose descriptor table is empty
    words = (Current(), Member(Current(), 0x768), Register(RBX), Stack(4, Member(Current(), OFFSET), SIZE))
    state = drawn(random.Random(2), SITE + APART)
    found = run(site(words, 0), guest, state)
    assert found[:3] == [0, 0, state.values[RBX]]
    assert found[3] > 0


def test_the_number_of_the_cpu_is_that_of_cpuid() -> None:
    words = (Register(RCX), Cpu(), Clock(), Register(RBX))
    state = drawn(random.Random(3), SITE + APART)
    found = run(site(words, 0), Guest({}), state)
    assert (found[0], found[1], found[3]) == (state.values[RCX], 0, state.values[RBX])


@pytest.mark.parametrize("dead", [0, EVERYTHING], ids=["nothing dead", "all dead"])
@pytest.mark.parametrize(
    ("sp", "expected"),
    [(0x6000, 0), (0x6008, 16), (0x6000 - 8, 1), (0x6000 - 0x80, 16), (0x6000 - 0x24, 4), (0x5F90, 14)],
)
def test_the_stack_is_read_up_to_the_end_of_its_page(dead: int, sp: int, expected: int) -> None:
    guest, state = Guest({}), drawn(random.Random(4), SITE + APART)
    sp += 1 << 40
    state = State({**state.values, RSP: sp}, state.pc)
    found = run(site((Stack(16),), dead), guest, state)
    assert found[0] == expected
    assert found[1 : 1 + expected] == [guest.word(sp + WORD * row) for row in range(expected)]
    assert not any(found[1 + expected :])


@pytest.mark.parametrize(
    ("below", "expected"), [(0, 0), (8, 1), (0x1000, 64), (SIZE, 64), (SIZE + 8, 1), (-8, 64), (-0xFF8, 1)]
)
def test_the_stack_of_the_task_is_read_up_to_its_end(below: int, expected: int) -> None:
    """`below`: how far its pointer is below the end of the task's stack."""
    guest, base, state = linux(2), 0xFFFF_C900_0000_8000, drawn(random.Random(5), SITE + APART)
    guest.write(TASK + 0x2000 + OFFSET, base.to_bytes(WORD, "little"))
    sp = base + SIZE - below
    state = State({**state.values, RSP: sp}, state.pc)
    found = run(site((Stack(64, Member(Current(), OFFSET), SIZE),), 0), guest, state)
    assert found[0] == expected
    assert found[1 : 1 + expected] == [guest.word(sp + WORD * row) for row in range(expected)]


def test_where_no_stack_is_known_nothing_is_read_of_it() -> None:
    state = drawn(random.Random(6), SITE + APART)
    assert run(site((Stack(2),), EVERYTHING, has_stack=False), Guest({}), state) == [0, 0, 0]


def test_reading_leaves_no_trace() -> None:
    choose, count = random.Random(7), 0
    every: list[Word] = [*(Register(number) for number in range(len(GENERAL))), Clock(), Cpu(), Stack(3)]
    for _ in range(80):
        words = choose.sample(every, choose.randrange(1, 6))
        one = site(words, choose.getrandbits(22))
        assert Moved([one], 0).differences(choose, lambda _address: one.dead) == "", one  # noqa: B023
        count += any(isinstance(word, Cpu | Stack) for word in words)
    assert count > 20
