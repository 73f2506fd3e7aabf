"""Rows that are alike, told together."""

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.runtime.hits import distinct as module
from kinst.runtime.hits.distinct import distinct


def told(rows: NDArray[np.uint64]) -> list[tuple[tuple[int, ...], int]]:
    """Each distinct row, and how often it is there."""
    first, hits = distinct(np.ascontiguousarray(rows.T))
    return [(tuple(row), count) for row, count in zip(rows[first].tolist(), hits.tolist(), strict=True)]


@pytest.mark.parametrize("kinds", [1, 4, 300, 1 << 60])
@pytest.mark.parametrize("width", [2, 3, 6])
def test_distinct_rows_come_in_the_order_of_the_first_of_each(width: int, kinds: int) -> None:
    draw = np.random.default_rng(width)
    rows = draw.integers(0, kinds, (30_000, width), np.uint64) * np.uint64(0x4000_0000_0000_0001)
    assert told(rows) == list(Counter(map(tuple, rows.tolist())).items())


def test_distinct_rows_that_are_mixed_to_the_same_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FACTOR", np.uint64(0))
    rows = np.array([[1, 0], [2, 0], [1, 0], [1, 1], [2, 0], [3, 3]], np.uint64)
    assert told(rows) == [((1, 0), 2), ((2, 0), 2), ((1, 1), 1), ((3, 3), 1)]
