"""Rooms, and how much of them is taken -> where the next trampolines are."""

from collections.abc import Sequence

import numpy as np

from kinst.rewriter.standalone.code.parts import Addresses, Numbers
from kinst.rewriter.standalone.places.spare import Gap


class Filling:
    """Rooms that are filled one after the other. Behind the last one it goes on, so that all is known of what has no
    gap."""

    def __init__(self, gaps: Sequence[Gap]) -> None:
        self._gaps = gaps
        self._gap = self._used = 0

    @property
    def needed(self) -> int:
        """Bytes of the last gap, to which all belongs that has no gap."""
        return self._used

    def addresses(self, sizes: Numbers) -> Addresses:
        """Where trampolines of so many bytes would be."""
        return self._places(sizes)[0]

    def put(self, sizes: Numbers) -> Numbers:
        """Take that gap. Returns the number of each one's gap, -1 where it has none."""
        _, gap_of, self._gap, self._used = self._places(sizes)
        return gap_of

    def _places(self, sizes: Numbers) -> tuple[Addresses, Numbers, int, int]:
        address, gap_of = np.zeros(len(sizes), np.uint64), np.full(len(sizes), -1)
        gap, used, first = self._gap, self._used, 0
        while True:
            start, end = self._gaps[gap]
            ends = used + np.cumsum(sizes[first:])
            fitting = first + int(np.searchsorted(ends, end - start, "right"))
            last = fitting if gap + 1 < len(self._gaps) else len(sizes)
            begins = (ends - sizes[first:])[: last - first]
            address[first:last] = np.uint64(start) + begins.astype(np.uint64)
            gap_of[first:fitting] = gap
            used = int(ends[last - first - 1]) if last > first else used
            if last == len(sizes):
                return address, gap_of, gap, used
            first, gap, used = last, gap + 1, 0
