"""Consecutive samples -> sorted rows, with rates and their trends."""

from collections import deque
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from kinst.runtime.top.sample import Sample, Table
from kinst.targets.values import dataclass

HISTORY: Final = 12  # samples that a trend shows
_HEIGHTS: Final = "▁▂▃▄▅▆▇█"
_SECOND: Final = 1e9


class Order(Enum):
    """The order of rows."""

    RATE = "rate"
    VALUE = "count"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A key of an aggregation."""

    key: str
    value: int
    rate: float  # a second of the host's time, since the sample before
    guest_rate: float  # a second of the machine's
    share: float  # of all values, 0 to 1
    length: float  # beside the greatest value, 0 to 1
    trend: str  # the rates of the last samples, a character each


class Ranking:
    """The rows of one table."""

    def __init__(self) -> None:
        """There is no sample yet."""
        self._table: Table | None = None
        self._before: Sample | None = None
        self.total = self._greatest = 0  # of all values
        self._seconds = self._guest_seconds = 0.0  # between the last two samples
        self._grown: deque[dict[str, int]] = deque(maxlen=HISTORY)  # what was added since the sample before, by key
        self._lengths: deque[float] = deque(maxlen=HISTORY)  # seconds

    def add(self, sample: Sample, table: Table) -> None:
        """Add the next sample, with its table that is ranked here."""
        before, known = self._before, self._table.values if self._table else {}
        self._before, self._table = sample, table
        self.total, self._greatest = sum(table.values.values()), max(table.values.values(), default=0)
        if before is None:
            return
        self._seconds, self._guest_seconds = (sample.wall - before.wall) / 1e9, (sample.time - before.time) / 1e9
        values = table.values.items() if table.is_growing and self._seconds > 0 else ()
        # A value that shrank was cleared or truncated by the program: that is not a negative rate.
        self._grown.append({key: grown for key, value in values if (grown := value - known.get(key, 0)) > 0})
        self._lengths.append(self._seconds)

    @property
    def rate(self) -> float:
        """The rate of all keys together, per second of the host's time."""
        return _rate(sum(self._grown[-1].values()), self._seconds) if self._grown else 0.0

    def keys(self, order: Order, wanted: str) -> list[str]:
        """The keys that match a text or pattern, sorted."""
        values = self._table.values if self._table else {}
        keys = [key for key in values if matches(wanted, key)]
        keys.sort()
        grown = self._grown[-1] if self._grown else {}
        match order:
            case Order.RATE:
                keys.sort(key=lambda key: (grown.get(key, 0), values[key]), reverse=True)
            case Order.VALUE:
                keys.sort(key=values.__getitem__, reverse=True)
            case Order.NAME:
                pass
        return keys

    def row(self, key: str) -> RankedRow:
        """The row of a key."""
        assert self._table is not None, "there was a sample"
        grown = self._grown[-1].get(key, 0) if self._grown else 0
        value, total = self._table.values[key], self.total
        return RankedRow(
            key,
            value,
            _rate(grown, self._seconds),
            _rate(grown, self._guest_seconds),
            value / total if total > 0 else 0.0,
            max(0, value) / self._greatest if self._greatest > 0 else 0.0,
            self._table.pictures.get(key) or self._trend(key),
        )

    def _trend(self, key: str) -> str:
        rates = [_rate(grown.get(key, 0), length) for grown, length in zip(self._grown, self._lengths, strict=True)]
        return sparkline(rates)


def _rate(grown: int, seconds: float) -> float:
    return grown / seconds if seconds > 0 else 0.0


def sparkline(numbers: list[float] | list[int]) -> str:
    """A character for each number, whose height is proportional to it; a blank for 0."""
    highest = max(numbers, default=0)
    if highest <= 0:
        return " " * len(numbers)
    last = len(_HEIGHTS) - 1
    return "".join(_HEIGHTS[round(number / highest * last)] if number > 0 else " " for number in numbers)


def matches(wanted: str, key: str) -> bool:
    """Whether a key contains a text, or, if that has `*` or `?`, matches it as a pattern from beginning to end."""
    if "*" in wanted or "?" in wanted:
        return fnmatchcase(key, wanted)
    return wanted in key
