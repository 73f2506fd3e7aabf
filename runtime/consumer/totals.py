"""Snapshots of all CPUs -> one value per key of each aggregation: what clear, trunc, normalize and printa act on.

libdtrace keeps this hash in the tool, and not in the kernel (dt_aggregate.c): clear(), trunc() and normalize() act on
it when their record is consumed, on what snapshots have added until then.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Final

from kinst.runtime.clauses.aggregations import Content, Contents, Key, Table, memory_of
from kinst.runtime.clauses.buckets import signed
from kinst.runtime.consumer.sorting import average, deviation, divide, key_order, value_order
from kinst.runtime.dlang.context import OptionValues
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.targets.values import dataclass

LIMIT: Final = 256 << 20  # bytes of our own memory for all keys
_BUCKET: Final = 100
_DISTRIBUTIONS: Final = frozenset(
    {AggregatingFunction.QUANTIZE, AggregatingFunction.LQUANTIZE, AggregatingFunction.LLQUANTIZE}
)


def is_distribution(aggregation: Aggregation) -> bool:
    """Whether the aggregation is printed as a picture."""
    return aggregation.function in _DISTRIBUTIONS


@dataclass(frozen=True, slots=True)
class Cell:
    """One aggregation's value for a key. `normal` is the divisor of counts when they are printed."""

    aggregation: Aggregation
    content: Content
    normal: int = 1

    @property
    def number(self) -> int:
        """The number that is printed. Raises TypeError for a distribution."""
        match self.aggregation.function, self.content:
            case AggregatingFunction.AVG, list(moments):
                return average(moments, self.normal)
            case AggregatingFunction.STDDEV, list(moments):
                return deviation(moments, self.normal)
            case _, int(number):
                return divide(number, self.normal)
            case _:
                raise TypeError(f"{self.aggregation.name} is not a number")

    @property
    def buckets(self) -> dict[int, int]:
        """bucket -> count, not normalized. Raises TypeError if it is not a distribution."""
        if not isinstance(self.content, dict):
            raise TypeError(f"{self.aggregation.name} is not a distribution")
        return self.content


@dataclass(frozen=True, slots=True)
class Row:
    """A key, and its value in each of the aggregations that are printed together."""

    key: Key
    cells: tuple[Cell, ...]


@dataclass(slots=True)
class _Total:
    aggregation: Aggregation
    table: Table = field(default_factory=dict)
    normals: dict[Key, int] = field(default_factory=dict)  # of the keys that were normalized

    def cell(self, key: Key) -> Cell:
        content = self.table.get(key)
        return Cell(self.aggregation, _zero(self.aggregation) if content is None else content, self.normals.get(key, 1))


class Totals:
    """What all CPUs have aggregated so far. `drops` counts, by CPU, values with a new key for which there was no
    space."""

    def __init__(self, options: OptionValues) -> None:
        """`options`: aggsortkey and the like, which are read whenever rows are sorted."""
        self._options = options
        self._totals: dict[int, _Total] = {}
        self._printed: set[int] = set()
        self._memory = 0
        self._on_printed: list[Callable[[Sequence[Aggregation]], None]] = []
        self.drops: Counter[int] = Counter()

    def on_printed(self, call: Callable[[Sequence[Aggregation]], None]) -> None:
        """Call `call` with the aggregations, each time that some are printed."""
        self._on_printed.append(call)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def absorb(self, taken: Iterable[Contents]) -> None:
        """Add what CPUs have aggregated since the last snapshot. This takes ownership of the tables in `taken`."""
        for contents in taken:
            total = self._totals.setdefault(contents.aggregation.number, _Total(contents.aggregation))
            table, merge = total.table, _MERGES[contents.aggregation.function]
            for key, content in contents.table.items():
                if key in table:
                    table[key] = merge(table[key], content)
                elif self._admit(contents.cpu, key, content):
                    table[key] = _wrapped(content)

    def _admit(self, cpu: int, key: Key, content: Content) -> bool:
        memory = self._memory + _memory(key, content)
        if memory > LIMIT:
            self.drops[cpu] += 1
            return False
        self._memory = memory
        return True

    def take_drops(self) -> dict[int, int]:
        """`drops` since the last time; they start at 0 again."""
        taken = dict(self.drops)
        self.drops.clear()
        return taken

    # -- actions ------------------------------------------------------------------------------------------------------

    def clear(self, aggregation: Aggregation) -> None:
        """clear(@): keys stay and their values become 0. A min() of positive values is 0 from then on, as in dtrace."""
        table = self._total(aggregation).table
        for key in table:
            table[key] = _zero(aggregation)

    def trunc(self, aggregation: Aggregation, count: int | None) -> None:
        """trunc(@, count): keep the `count` largest values, or the smallest if it is negative; None keeps nothing. The
        keys that are removed come back when they are aggregated again."""
        total = self._total(aggregation)
        by_value, by_key = value_order(aggregation), key_order(aggregation.keys, 0)
        keys = sorted(
            total.table if count else (),
            key=lambda key: (by_value(total.table[key]), by_key(key)),
            reverse=(count or 0) > 0,
        )[: abs(count or 0)]
        kept = {key: total.table.pop(key) for key in keys}
        self._memory -= sum(_memory(key, content) for key, content in total.table.items())
        total.table = kept
        total.normals = {key: normal for key, normal in total.normals.items() if key in kept}

    def normalize(self, aggregation: Aggregation, normal: int) -> None:
        """normalize(@, normal): applies to the keys that exist now, not to those that come later. 0 denormalizes."""
        total = self._total(aggregation)
        total.normals = dict.fromkeys(total.table, normal & (1 << 64) - 1) if normal not in (0, 1) else {}

    def denormalize(self, aggregation: Aggregation) -> None:
        """denormalize(@): values are printed as they were recorded."""
        self._total(aggregation).normals = {}

    def _total(self, aggregation: Aggregation) -> _Total:
        return self._totals.setdefault(aggregation.number, _Total(aggregation))

    # -- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, aggregation: Aggregation) -> list[Row]:
        """The rows of all keys, in the order that the options set."""
        return list(self.each_row(aggregation))

    def each_row(self, aggregation: Aggregation) -> Iterator[Row]:
        """As `rows`, one after another: there may be a million."""
        total = self._total(aggregation)
        keys, is_reverse = list(total.table), self._options.is_on("aggsortrev")
        # Sorting is stable, so the primary order is sorted last. Two sorts by plain values take a third of the time and
        # memory of one sort by pairs.
        keys.sort(key=key_order(aggregation.keys, self._options.number("aggsortkeypos")), reverse=is_reverse)
        if not self._options.is_on("aggsortkey"):
            by_value, table = value_order(aggregation), total.table
            keys.sort(key=lambda key: by_value(table[key]), reverse=is_reverse)
        return (Row(key, (total.cell(key),)) for key in keys)

    def unsorted_rows(self, aggregation: Aggregation) -> Iterator[Row]:
        """The rows of all keys, in the order in which they were first aggregated."""
        total = self._total(aggregation)
        return (Row(key, (total.cell(key),)) for key in total.table)

    def joined(self, aggregations: Sequence[Aggregation]) -> list[Row]:
        """Aggregations with keys of the same types side by side: a row for each key that any of them has, with 0 for
        those that lack it. Rows are sorted by the aggregation at aggsortpos, then by those after it."""
        totals = [self._total(aggregation) for aggregation in aggregations]
        keys = dict.fromkeys(key for total in totals for key in total.table)
        rows = [Row(key, tuple([total.cell(key) for total in totals])) for key in keys]
        by_key = key_order(aggregations[0].keys, self._options.number("aggsortkeypos"))
        order: Callable[[Row], object]
        if self._options.is_on("aggsortkey"):
            order = lambda row: by_key(row.key)  # noqa: E731  # the two are alternatives
        else:
            order = _joined_order(aggregations, self._options.number("aggsortpos"), by_key)
        rows.sort(key=order, reverse=self._options.is_on("aggsortrev"))  # type: ignore[arg-type]
        return rows

    def mark_printed(self, aggregations: Sequence[Aggregation]) -> None:
        """printa() printed these: if any of them had a row, they are not printed at the end."""
        if any(self._total(aggregation).table for aggregation in aggregations):
            self._printed.update(aggregation.number for aggregation in aggregations)
        for call in self._on_printed:
            call(aggregations)

    def unprinted(self) -> list[Aggregation]:
        """The aggregations that have rows and were not printed, in the order of their definition, or in reverse with
        aggsortrev: dtrace sorts the rows of all of them together."""
        return [
            total.aggregation
            for number, total in sorted(self._totals.items(), reverse=self._options.is_on("aggsortrev"))
            if number not in self._printed and total.table
        ]


def _joined_order(
    aggregations: Sequence[Aggregation], first: int, by_key: Callable[[Key], object]
) -> Callable[[Row], object]:
    first = first if 0 <= first < len(aggregations) else 0
    places = [*range(first, len(aggregations)), *range(first)]
    orders = [value_order(aggregation) for aggregation in aggregations]
    return lambda row: ([orders[place](row.cells[place].content) for place in places], by_key(row.key))


# -- contents ---------------------------------------------------------------------------------------------------------


def _zero(aggregation: Aggregation) -> Content:
    """The value after clear(), and that of a key which only another aggregation has."""
    if is_distribution(aggregation):
        return {}
    match aggregation.function:
        case AggregatingFunction.AVG | AggregatingFunction.STDDEV:
            return [0, 0, 0]
        case _:
            return 0


def _wrapped(content: Content) -> Content:
    """Content with its sums wrapped to the 64 bits that the kernel has for them. Squares of stddev have 128 there."""
    match content:
        case int():
            return signed(content)
        case list():
            content[1] = signed(content[1])
            return content
        case _:
            return {bucket: signed(count) for bucket, count in content.items()}


def _memory(key: Key, content: Content) -> int:
    return memory_of(key) + (_BUCKET * len(content) if isinstance(content, dict) else 0)


def _added(left: int, right: int) -> int:
    return signed(left + right)


def _added_moments(left: list[int], right: list[int]) -> list[int]:
    sums = [one + other for one, other in zip(left, right, strict=False)]
    sums[1] = signed(sums[1])
    return sums


def _added_buckets(left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
    for bucket, count in right.items():
        left[bucket] = signed(left.get(bucket, 0) + count)
    return left


_MERGES: Final[dict[AggregatingFunction, Callable[..., Content]]] = {
    AggregatingFunction.COUNT: _added,
    AggregatingFunction.SUM: _added,
    AggregatingFunction.MIN: min,
    AggregatingFunction.MAX: max,
    AggregatingFunction.AVG: _added_moments,
    AggregatingFunction.STDDEV: _added_moments,
    AggregatingFunction.QUANTIZE: _added_buckets,
    AggregatingFunction.LQUANTIZE: _added_buckets,
    AggregatingFunction.LLQUANTIZE: _added_buckets,
}
