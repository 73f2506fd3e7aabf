"""Speculations: numbers, room, what commit and discard do."""

import pytest

from kinst.runtime.clauses.buffers import Buffers
from kinst.runtime.clauses.environment import Record
from kinst.runtime.clauses.speculations import Speculations
from kinst.runtime.trap.faults import Fault, FaultKind


def record(number: int, cpu: int = 0) -> Record:
    return (cpu, number, 0, 0, ())


def speculations(count: int = 2, size: int = 64, buffer: int | None = None) -> tuple[Speculations, Buffers]:
    buffers = Buffers(buffer, "switch", lambda: None)
    return Speculations(count, size, buffers), buffers


def speculate(made: Speculations, number: int, what: Record, size: int = 16) -> bool:
    if not made.reserve(number, what[0], size):
        return False
    made.append(number, what)
    return True


def test_numbers_start_at_one_and_the_lowest_free_is_given() -> None:
    made, _ = speculations(3)

    assert [made.create(0) for _ in range(5)] == [1, 2, 3, 0, 0]
    assert made.unavailable == 2
    made.discard(3, 0)
    made.commit(1, 0)
    assert [made.create(0) for _ in range(3)] == [1, 3, 0]
    assert made.unavailable == 3


def test_records_wait_for_the_commit() -> None:
    made, buffers = speculations()
    number = made.create(0)
    speculate(made, number, record(1))
    speculate(made, number, record(2, cpu=1))
    speculate(made, number, record(3))

    assert buffers.take() == []
    made.commit(number, 0)
    assert buffers.take() == [record(1), record(2, 1), record(3)]
    assert not made.reserve(number, 0, 16)  # it is inactive


def test_discarded_records_are_gone() -> None:
    made, buffers = speculations()
    number = made.create(0)
    speculate(made, number, record(1))
    made.discard(number, 0)

    assert made.create(0) == number
    made.commit(number, 0)
    assert buffers.take() == []


def test_zero_is_no_speculation() -> None:
    """speculate(0) skips the rest of the clause, commit(0) and discard(0) do nothing."""
    made, buffers = speculations()

    assert not made.reserve(0, 0, 16)
    made.commit(0, 0)
    made.discard(0, 0)
    assert (made.drops, made.unavailable, made.busy, buffers.take()) == (0, 0, 0, [])


def test_an_inactive_number_records_nothing() -> None:
    made, buffers = speculations()

    assert not made.reserve(2, 0, 16)
    made.commit(2, 0)
    assert buffers.take() == []


@pytest.mark.parametrize("number", [3, -1, 1 << 40])
def test_other_numbers_are_a_fault(number: int) -> None:
    made, _ = speculations(2)
    for act in (lambda: made.reserve(number, 0, 1), lambda: made.commit(number, 0), lambda: made.discard(number, 0)):
        with pytest.raises(Fault) as caught:
            act()
        assert caught.value.kind is FaultKind.ILLOP


def test_what_does_not_fit_is_dropped_and_told_of_at_the_end() -> None:
    made, buffers = speculations(size=40)
    number = made.create(0)

    assert [speculate(made, number, record(one)) for one in range(3)] == [True, True, False]
    assert speculate(made, number, record(3, cpu=1))
    assert made.drops == 0
    made.commit(number, 0)
    assert made.drops == 1
    assert len(buffers.take()) == 3


def test_a_commit_that_does_not_fit_the_principal_buffer_is_dropped_whole() -> None:
    made, buffers = speculations(buffer=40)
    number = made.create(0)
    for one in range(3):
        speculate(made, number, record(one))
    speculate(made, number, record(9, cpu=1))
    made.commit(number, 0)

    assert buffers.take() == [record(9, 1)]
    assert buffers.drops == {0: 1}


def test_a_great_many_cost_nothing_before_they_are_used() -> None:
    made, _ = speculations(count=1 << 60)

    assert made.create(0) == 1
    assert not made.reserve(1000, 0, 16)
