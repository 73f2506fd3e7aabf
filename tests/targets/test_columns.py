"""The fast answers about columns are numpy's own."""

import numpy as np
import pytest

from kinst.targets.columns import holds, is_in, unique, unique_rows


@pytest.mark.parametrize("seed", range(40))
def test_columns_are_answered_as_by_numpy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count, bound = draw.integers(0, 200), int(draw.choice([3, 100, 1 << 63]))
    column = draw.integers(0, bound, count).astype(np.uint64)
    others = np.sort(draw.integers(0, bound, draw.integers(0, 200)).astype(np.uint64))
    assert (unique(column) == np.unique(column)).all()
    assert (is_in(column, others) == np.isin(column, others)).all()
    distinct = np.unique(others)
    assert (holds(distinct, column) == np.isin(distinct, column)).all()


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_ordered_as_by_numpy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.integers(0, int(draw.choice([2, 1 << 63])), (draw.integers(0, 60), draw.integers(1, 4)))
    rows = rows.astype(np.uint64)
    assert np.array_equal(unique_rows(rows), np.unique(rows, axis=0))
