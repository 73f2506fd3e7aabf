"""Which rows of faults are a circle, and which are work."""

from collections.abc import Iterator
from itertools import chain, count, repeat

import pytest

from kinst.runtime.machine.events.progress import Fault, Progress

SP = 1


def progress(states: Iterator[tuple[int, int]]) -> Progress:
    """Of a CPU with two registers, of which the second is its stack pointer."""
    values = chain.from_iterable(states)
    return Progress(lambda _name: next(values), ("a0", "sp"), SP)


def faults(watch: Progress, number: int, *places: int, address: int | None = 0x10) -> None:
    for _ in range(number):
        for place in places:
            watch.fault(place, 0x9000, "read", address)


@pytest.mark.parametrize("places", [(0x100,), (0x100, 0x200, 0x300)])
def test_the_same_faults_with_the_same_registers_are_a_circle(places: tuple[int, ...]) -> None:
    watch = progress(repeat((7, 8)))
    faults(watch, 3000, *places)
    assert watch.circle is not None
    assert watch.circle.pc in places
    assert not watch.circle.is_nested


def test_a_stack_that_grows_with_each_fault_is_a_handler_that_faults() -> None:
    watch = progress((0, 0x10000 - 16 * step) for step in count())
    faults(watch, 600, 0x100)
    assert watch.circle == Fault(0x100, "read", 0x10, is_nested=True)


def test_a_stack_that_grows_to_other_addresses_is_a_recursion() -> None:
    watch = progress((0, 0x10000 - 16 * step) for step in count())
    for step in range(5000):
        watch.fault(0x100, 0x9000, "write", 0x10000 - 16 * step)
    assert watch.circle is None


def test_registers_that_change_are_work() -> None:
    watch = progress((step, 8) for step in count())
    faults(watch, 5000, 0x100)
    assert watch.circle is None


def test_what_happens_in_between_is_progress() -> None:
    watch = progress(repeat((7, 8)))
    for _ in range(10):
        faults(watch, 1000, 0x100)
        watch.went_on()  # a tick, a system call, something on the console
    assert (watch.circle, watch.last) == (None, None)


def test_many_places_are_no_circle() -> None:
    watch = progress(repeat((7, 8)))
    faults(watch, 2000, *range(0x100, 0x600, 0x100))
    assert watch.circle is None


def test_an_emulated_instruction_is_none() -> None:
    watch = progress(repeat((7, 8)))
    for _ in range(5000):
        watch.fault(0x100, 0x104, "an illegal instruction")
    assert (watch.circle, watch.last) == (None, None)
