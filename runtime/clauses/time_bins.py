"""Events with their times -> counts by row, in columns of equal width.

The width doubles as time goes on, so that a run of any length has no more columns than a picture can show.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Final

MOST: Final = 512  # columns
_FINEST: Final = 1_000  # ns


class TimeBins:
    """Counts by row and column. `width` is that of a column in ns, a power of two times a microsecond."""

    def __init__(self, start: int) -> None:
        """`start` is the time (ns) at which the first column begins; earlier events are counted there."""
        self.start = start
        self.width = _FINEST
        self._rows: defaultdict[Hashable, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __iter__(self) -> Iterator[tuple[Hashable, dict[int, int]]]:
        """The rows in the order in which they came: column -> count."""
        return iter(self._rows.items())

    @property
    def columns(self) -> int:
        """The number of columns up to the last one with an entry."""
        return 1 + max((max(row) for row in self._rows.values() if row), default=-1)

    def add(self, row: Hashable, time: int, count: int = 1) -> None:
        """Count `count` events at a time (ns)."""
        column = max(0, time - self.start) // self.width
        while column >= MOST:
            self._widen()
            column >>= 1
        self._rows[row][column] += count

    def spread(self, row: Hashable, since: int, until: int, count: int) -> None:
        """Count `count` events between two times (ns), distributed evenly."""
        self.add(row, max(since, until - 1), 0)  # widens columns until the last of them exists
        first, last = (max(0, time - self.start) // self.width for time in (since, max(since, until - 1)))
        columns, before = last - first + 1, 0
        for number in range(1, columns + 1):
            part = count * number // columns
            if part != before:
                self._rows[row][first + number - 1] += part - before
            before = part

    def _widen(self) -> None:
        self.width *= 2
        for row, columns in self._rows.items():
            wider: defaultdict[int, int] = defaultdict(int)
            for column, count in columns.items():
                wider[column >> 1] += count
            self._rows[row] = wider
