"""Counters that begin with drawn numbers: what they have counted, and whether the image has cleared them."""

import numpy as np

from kinst.runtime.tracing.standalone.drawn_counters import counted, drawn, first_wrong, is_cleared

BEGUN = drawn(4)


def after(*hits: int) -> bytes:
    return (BEGUN + np.array(hits, np.uint64)).tobytes()


def words(*values: int) -> bytes:
    return np.array(values, "<u8").tobytes()


def hits(data: bytes, *, may_clear: bool) -> list[int]:
    return list(map(int, np.frombuffer(counted(data, BEGUN, may_clear=may_clear), "<u8")))


def test_what_was_counted_is_above_what_they_began_with() -> None:
    assert hits(after(0, 7, 1, 1 << 40), may_clear=False) == [0, 7, 1, 1 << 40]
    assert hits(after(0, 7, 1, 1 << 40), may_clear=True) == [0, 7, 1, 1 << 40]
    assert not is_cleared(after(0, 7, 1, 1 << 40), BEGUN)


def test_cleared_counters_count_from_zero() -> None:
    data = words(0, 3, 5, 0)
    assert hits(data, may_clear=True) == [0, 3, 5, 0]
    assert is_cleared(data, BEGUN)
    assert first_wrong(counted(data, BEGUN, may_clear=False)) == 0  # somebody else's store


def test_they_may_be_read_while_they_are_cleared() -> None:
    data = words(0, 2) + after(0, 0, 1, 6)[16:]
    assert hits(data, may_clear=True) == [0, 2, 1, 6]
    assert is_cleared(data, BEGUN)


def test_what_nothing_counts_is_wrong_in_those_too() -> None:
    data = after(0, 7, 1, 0)[:16] + words(1 << 60) + after(0, 0, 0, 0)[24:]
    assert first_wrong(counted(data, BEGUN, may_clear=True)) == 2


def test_counters_that_begin_with_zero_are_not_cleared() -> None:
    assert not is_cleared(words(0, 0), np.zeros(2, np.uint64))
