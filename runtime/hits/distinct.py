"""Rows of numbers, many of them equal -> where the first of each is, and how often it occurs.

Each row is hashed to a slot. Rows that equal the first one of their slot are done; the others, few unless there are
tens of thousands of distinct rows, are put into slots by other bits of the hash. Sorting takes longer: it is left to
those that collide three times.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: Knuth, volume 3, 6.4
_BITS: Final = 16  # of a slot
_SHIFTS: Final = tuple(np.uint64(shift) for shift in (48, 32, 16))  # low bits of a product depend on low bits only


def distinct(columns: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the first of each distinct row is, ascending, and how often it occurs.

    Args:
        columns: (columns, rows) the rows, transposed: that each column is contiguous makes it fast.
    """
    count = columns.shape[1]
    hits, left, mixed = np.zeros(count, np.intp), np.arange(count), _mixed(columns)
    first_in = np.empty(1 << _BITS, np.intp)
    for shift in _SHIFTS:
        slots = (mixed >> shift & np.uint64((1 << _BITS) - 1)).view(np.intp)
        first_in[slots[::-1]] = np.arange(len(slots))[::-1]  # the last write to a slot counts: the first row
        first = first_in[slots]
        differs = np.zeros(len(slots), np.bool_)
        for column in columns:
            differs |= column[first] != column
        hits += np.bincount(left[first[~differs]], minlength=count)
        if not differs.any():
            break
        columns, left, mixed = columns[:, differs], left[differs], mixed[differs]
    else:
        _, first, more = np.unique(columns, axis=1, return_index=True, return_counts=True)
        hits[left[first]] = more
    found = np.flatnonzero(hits)
    return found, hits[found]


def _mixed(columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed: NDArray[np.uint64] = columns[0] * _FACTOR
    for column in columns[1:]:
        mixed ^= mixed >> np.uint64(29)
        mixed ^= column
        mixed *= _FACTOR
    return mixed
