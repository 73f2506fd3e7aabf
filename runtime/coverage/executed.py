"""Blocks of one image that ran -> how often each of its addresses was reached.

Blocks overlap: where a breakpoint or a page ends one, the same code is part of several. So the counts are kept as the
places at which they change.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kinst.targets.values import dataclass

Changes = Iterable[tuple[NDArray[np.uint64], NDArray[np.int64]]]  # addresses, and what is added from each of them on


@dataclass(frozen=True, slots=True)
class Executed:
    """`counts[n]` runs at each address from `points[n]` to the next point; 0 before the first."""

    points: NDArray[np.uint64]
    counts: NDArray[np.int64]

    def at(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The counts at many addresses."""
        if not len(self.points):
            return np.zeros(len(addresses), np.int64)
        row = np.searchsorted(self.points, addresses, "right") - 1
        return np.where(row >= 0, self.counts[np.maximum(row, 0)], 0)

    def pieces(self) -> list[tuple[int, int, int]]:
        """Start, end and count of all that ran, in address order."""
        found = zip(self.points[:-1].tolist(), self.points[1:].tolist(), self.counts[:-1].tolist(), strict=True)
        return [piece for piece in found if piece[2] > 0]


def executed(changes: Changes) -> Executed:
    """Add up changes of the count."""
    parts = list(changes)
    if not parts:
        return Executed(np.zeros(0, np.uint64), np.zeros(0, np.int64))
    addresses = np.concatenate([at for at, _ in parts])
    points, place = np.unique(addresses, return_inverse=True)
    sums = np.zeros(len(points), np.int64)
    np.add.at(sums, place, np.concatenate([change for _, change in parts]))
    return Executed(points, np.cumsum(sums))
