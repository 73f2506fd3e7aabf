"""Gaps, and how much of each is taken -> where the next trampolines are."""

from collections.abc import Sequence

import numpy as np

from kinst.rewriter.standalone.code.parts import Addresses, Numbers
from kinst.rewriter.standalone.places.spare import Gap


class Filling:
    """Gaps that are filled one after the other, each to its end before the next. Past the end of the last gap addresses
    go on, so that code can be laid out and measured before it is known whether it fits."""

    def __init__(self, gaps: Sequence[Gap]) -> None:
        self._gaps = gaps
        self._gap = self._used = 0

    @property
    def needed(self) -> int:
        """Bytes of the last gap that are taken, with the trampolines that did not fit."""
        return self._used

    def addresses(self, sizes: Numbers) -> Addresses:
        """Where trampolines of these sizes would be."""
        return self._places(sizes)[0]

    def put(self, sizes: Numbers) -> Numbers:
        """Take space for trampolines. Returns the gap of each, -1 if it did not fit."""
        _, gap_of, self._gap, self._used = self._places(sizes)
        return gap_of

    def _places(self, sizes: Numbers) -> tuple[Addresses, Numbers, int, int]:
        address, gap_of = np.zeros(len(sizes), np.uint64), np.full(len(sizes), -1)
        gap, used, first = self._gap, self._used, 0
        while True:
            start, end = self._gaps[gap]
            ends = used + np.cumsum(sizes[first:])
            # A trampoline lies in one gap; what is left at the end of a gap stays unused.
            fitting = first + int(np.searchsorted(ends, end - start, "right"))
            # Only the last gap takes more than it holds.
            last = fitting if gap + 1 < len(self._gaps) else len(sizes)
            begins = (ends - sizes[first:])[: last - first]
            address[first:last] = np.uint64(start) + begins.astype(np.uint64)
            gap_of[first:fitting] = gap
            used = int(ends[last - first - 1]) if last > first else used
            if last == len(sizes):
                return address, gap_of, gap, used
            first, gap, used = last, gap + 1, 0
