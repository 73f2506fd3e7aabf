"""Buffers: what is kept, dropped, overwritten; order; room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.clauses.buffers import BACKLOG, DEFAULT, PRINTING, VALUE, Buffers
from kinst.runtime.clauses.environment import ErrorRecord, Record
from kinst.runtime.trap.faults import Fault, FaultKind


def record(number: int, cpu: int = 0) -> Record:
    return (cpu, number, 0, 0, ())


def nobody() -> None:
    """Is there to drain."""


def put(buffers: Buffers, number: int, size: int, cpu: int = 0) -> bool:
    if not buffers.reserve(cpu, size):
        return False
    buffers.append(record(number, cpu))
    return True


def error(cpu: int = 0) -> ErrorRecord:
    return ErrorRecord(cpu, 7, 1, 1, Fault(FaultKind.DIVZERO))


@pytest.mark.parametrize("policy", ["switch", "fill", "ring"])
def test_taken_in_the_order_of_events_on_all_cpus_and_the_console(policy: str) -> None:
    buffers = Buffers(1000, policy, nobody)
    put(buffers, 1, 10)
    buffers.append_console(b"a\n")
    put(buffers, 2, 10, cpu=1)
    failed = error()
    buffers.append_error(failed)
    put(buffers, 3, 10)

    assert buffers.take() == [record(1), b"a\n", record(2, 1), failed, record(3)]
    assert buffers.take() == []


def test_switch_drops_what_does_not_fit_on_this_cpu() -> None:
    buffers = Buffers(32, "switch", nobody)

    assert [put(buffers, number, 16) for number in range(4)] == [True, True, False, False]
    assert put(buffers, 9, 16, cpu=1)
    assert buffers.drops == {0: 2}
    assert buffers.take_drops() == {0: 2}
    assert buffers.take_drops() == {}
    assert buffers.take() == [record(0), record(1), record(9, 1)]
    assert put(buffers, 5, 32)


def test_reserving_alone_takes_no_room() -> None:
    """A clause reserves before its predicate, which is mostly false."""
    buffers = Buffers(32, "switch", nobody)

    assert all(buffers.reserve(0, 32) for _ in range(100))
    assert not buffers.drops


def test_an_error_needs_room_too() -> None:
    buffers = Buffers(64, "switch", nobody)
    buffers.append_error(error())
    buffers.append_error(error())

    assert len(buffers.take()) == 1
    assert buffers.drops == {0: 1}


def test_fill_ends_on_the_cpu_that_is_full_and_drops_nothing() -> None:
    buffers = Buffers(32, "fill", nobody)
    put(buffers, 1, 30)

    assert not buffers.is_full
    assert not put(buffers, 2, 16)
    assert buffers.is_full
    assert not put(buffers, 3, 1)  # would fit, but this CPU has stopped
    assert put(buffers, 4, 16, cpu=1)
    buffers.is_ending = True
    assert put(buffers, 5, 16)  # END's
    assert not buffers.drops
    assert buffers.take() == [record(1), record(4, 1), record(5)]


def test_fill_leaves_room_for_end() -> None:
    buffers = Buffers(32, "fill", nobody)
    buffers.held_back = 16
    assert put(buffers, 1, 16)
    assert not put(buffers, 2, 8)
    buffers.is_ending = True
    buffers.take()
    assert put(buffers, 3, 32)


def test_a_buffer_grows_before_the_run() -> None:
    buffers = Buffers(8, "switch", nobody)
    buffers.grow(24)
    buffers.grow(16)
    assert buffers.size == 24
    assert put(buffers, 1, 24)


def test_no_record_of_a_ring_is_split() -> None:
    """What is left at the end stays empty, and the records that lay there are gone."""
    buffers = Buffers(40, "ring", nobody)
    for number in range(3):
        put(buffers, number, 16)  # at 0, 16, 0
    assert buffers.take() == [record(1), record(2)]
    put(buffers, 1, 16)
    put(buffers, 2, 16)
    put(buffers, 3, 24)  # at 0: 1 and 2 lie there
    assert buffers.take() == [record(3)]


def test_ring_keeps_the_newest() -> None:
    buffers = Buffers(48, "ring", nobody)
    buffers.append_console(b"boot\n")
    for number in range(10):
        put(buffers, number, 16)
    put(buffers, 10, 32)
    put(buffers, 11, 16, cpu=1)

    assert not put(buffers, 12, 49)
    assert buffers.drops == {0: 1}
    assert buffers.take() == [b"boot\n", record(9), record(10), record(11, 1)]


@pytest.mark.parametrize("policy", ["switch", "fill", "ring"])
def test_the_console_alone(policy: str) -> None:
    buffers = Buffers(None, policy, nobody)
    put(buffers, 1, 16)
    buffers.append_console(b"a")
    buffers.append_console(b"b")

    assert buffers.take_console() == [b"a", b"b"]
    assert buffers.take_console() == []
    assert buffers.take() == [record(1)]


def test_without_a_size_it_asks_for_a_drain_and_drops_nothing() -> None:
    buffers = Buffers(None, "switch", lambda: taken.extend(buffers.take()))
    taken: list[object] = []
    assert all(put(buffers, number, DEFAULT) for number in range(40))
    assert taken
    assert [*taken, *buffers.take()] == [record(number) for number in range(40)]
    assert not buffers.drops


@pytest.mark.parametrize("size", [4, 4096, DEFAULT])
def test_without_a_size_there_is_never_much_to_print(size: int) -> None:
    """Nobody can end the run meanwhile: small records are counted as what it takes to print them."""
    buffers = Buffers(None, "switch", lambda: drains.append(len(buffers.take())))
    drains: list[int] = []
    for number in range(10_000):
        put(buffers, number, size)

    assert drains
    assert max(drains) <= max(1, BACKLOG // (size + PRINTING))
    assert not buffers.drops


@pytest.mark.parametrize("values", [1, 300, 1 << 17])
def test_values_that_print_writes_count_though_they_are_the_same_bytes(values: int) -> None:
    """print() of a union writes a line for each member; other clauses are not dearer for it."""
    buffers = Buffers(None, "switch", lambda: drains.append(len(buffers.take())))
    drains: list[int] = []
    buffers.weigh(7, values)
    for number in range(10_000):
        assert buffers.reserve(0, 16)
        buffers.append((0, number, 7, 0, ()))

    one = 16 + PRINTING + VALUE * values
    assert max(drains) <= max(1, -(-BACKLOG // one))
    assert drains and not buffers.drops
    buffers.take()
    drains.clear()
    for number in range(3000):
        put(buffers, number, 16)
    assert not drains


def test_nobody_drains_or_a_record_larger_than_everything() -> None:
    buffers = Buffers(None, "switch", nobody)

    assert not put(buffers, 1, DEFAULT + 1)
    assert put(buffers, 2, DEFAULT)
    assert not put(buffers, 3, DEFAULT)
    assert buffers.drops == {0: 2}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40))), st.sampled_from(["switch", "fill", "ring"]))
def test_no_cpu_ever_holds_more_than_its_size(events: list[tuple[int, int]], policy: str) -> None:
    buffers = Buffers(64, policy, nobody)
    sizes = {}
    for number, (cpu, size) in enumerate(events):
        if put(buffers, number, size, cpu):
            sizes[number] = (cpu, size)
    kept = [entry[1] for entry in buffers.take() if isinstance(entry, tuple)]

    assert kept == sorted(kept)
    for cpu in range(3):
        assert sum(sizes[number][1] for number in kept if sizes[number][0] == cpu) <= 64
