"""Half-open ranges of addresses: (n, 2) start and end, ascending; no two of one kind overlap."""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import unique

Spans = NDArray[np.uint64]


def covered(spans: Spans, address: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which addresses are in one of the spans."""
    if not len(spans):
        return np.zeros(len(address), np.bool_)
    row = np.searchsorted(spans[:, 0], address, "right") - 1
    found: NDArray[np.bool_] = (row >= 0) & (address < spans[np.maximum(row, 0), 1])
    return found


def inside(spans: Spans, ascending: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """The same for addresses that ascend, of which there are many more than spans."""
    depth = np.zeros(len(ascending) + 1, np.int8)
    np.add.at(depth, np.searchsorted(ascending, spans[:, 0]), np.int8(1))
    np.add.at(depth, np.searchsorted(ascending, spans[:, 1]), np.int8(-1))
    found: NDArray[np.bool_] = np.cumsum(depth[:-1], dtype=np.int8) > 0
    return found


def less(spans: Spans, taken: Spans) -> Spans:
    """`spans` without `taken`."""
    cuts = unique(np.concatenate([spans.ravel(), taken.ravel()]))
    pieces = np.stack([cuts[:-1], cuts[1:]], axis=1)
    return pieces[covered(spans, pieces[:, 0]) & ~covered(taken, pieces[:, 0])]


def united(spans: Spans) -> Spans:
    """Spans that may overlap, in any order, as spans that do not."""
    if not len(spans):
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(spans[:, 1])
    first = np.append(True, spans[1:, 0] > reach[:-1])
    last = np.append(first[1:], True)
    return np.stack([spans[first, 0], reach[last]], axis=1)


def length(spans: Spans) -> int:
    """Bytes of all."""
    return int((spans[:, 1] - spans[:, 0]).sum())
