"""Counters that begin with drawn numbers: what they have counted, and whether the image has cleared them."""

from dataclasses import replace

import numpy as np

from kinst.runtime.tracing.standalone.drawn_counters import first_wrong, start_values
from kinst.targets.standalone import Action, Standalone

OURS = start_values(Standalone(Action.COUNT, 0, 0, 32), 4, may_clear=False)
CLEARS = replace(OURS, may_clear=True)


def after(*hits: int) -> bytes:
    return (OURS.words + np.array(hits, np.uint64)).tobytes()


def words(*values: int) -> bytes:
    return np.array(values, "<u8").tobytes()


def hits(data: bytes, *, may_clear: bool) -> list[int]:
    return list(map(int, np.frombuffer((CLEARS if may_clear else OURS).counted(data), "<u8")))


def test_what_was_counted_is_above_what_they_began_with() -> None:
    assert hits(after(0, 7, 1, 1 << 40), may_clear=False) == [0, 7, 1, 1 << 40]
    assert hits(after(0, 7, 1, 1 << 40), may_clear=True) == [0, 7, 1, 1 << 40]
    assert not CLEARS.is_cleared(after(0, 7, 1, 1 << 40))


def test_cleared_counters_count_from_zero() -> None:
    data = words(0, 3, 5, 0)
    assert hits(data, may_clear=True) == [0, 3, 5, 0]
    assert CLEARS.is_cleared(data)
    assert first_wrong(OURS.counted(data)) == 0  # somebody else's store


def test_they_may_be_read_while_they_are_cleared() -> None:
    data = words(0, 2) + after(0, 0, 1, 6)[16:]
    assert hits(data, may_clear=True) == [0, 2, 1, 6]
    assert CLEARS.is_cleared(data)


def test_they_may_be_read_while_one_is_cleared_byte_by_byte() -> None:
    """As Linux for amd64 clears its .bss: QEMU's rep stosb stores byte by byte, and we read at any moment."""
    data, size = after(1, 7, 1, 6), len(after(0, 0, 0, 0))
    for done in range(9, size + 1):
        counts = CLEARS.counted(bytes(done) + data[done:])
        assert first_wrong(counts) is None, done
        assert np.frombuffer(counts, "<u8").tolist() == [0 if 8 * row < done else (1, 7, 1, 6)[row] for row in range(4)]
    assert first_wrong(OURS.counted(bytes(13) + data[13:])) == 0


def test_what_nothing_counts_is_wrong_in_those_too() -> None:
    data = after(0, 7, 1, 0)[:16] + words(1 << 60) + after(0, 0, 0, 0)[24:]
    assert first_wrong(CLEARS.counted(data)) == 2


def test_counters_that_begin_with_zero_are_not_cleared() -> None:
    assert not CLEARS.as_loaded.is_cleared(words(0, 0, 0, 0))


def test_a_ring_that_may_be_cleared_has_one_in_its_head() -> None:
    kept = Standalone(Action.RECORD, 0, 0, 4096, 16)
    assert start_values(kept, 4, may_clear=False).size == 0
    found = start_values(kept, 4, may_clear=True)
    assert (found.offset, found.size) == (56, 8)
    assert not found.is_cleared(found.data)
    assert found.is_cleared(words(0))
