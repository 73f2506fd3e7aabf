"""Distributions over time -> a heat map: --format heatmap, and the pictures of a report."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import BinaryIO, Final

from kinst.runtime.clauses.aggregations import Contents
from kinst.runtime.clauses.time_bins import TimeBins
from kinst.runtime.consumer.documents.json_values import JsonValues, bucket_bounds
from kinst.runtime.consumer.documents.table import cell
from kinst.runtime.consumer.pictures.added_over_time import AddedOverTime
from kinst.runtime.consumer.pictures.heat_map import HeatRow, Panel, heat_map
from kinst.runtime.consumer.totals import is_distribution
from kinst.runtime.dlang.program import Aggregate, Aggregation, Clause
from kinst.targets.errors import UsageError

_KEYS: Final = 8  # panels for keys of an aggregation
_GAP: Final = HeatRow("⋯", {})
_LONGEST: Final = 4  # rows without a value, one after another, that are shown
_ROWS: Final = 96  # of a panel: buckets side by side share one if there are more


def distributions_of(clauses: Sequence[Clause]) -> list[Aggregation]:
    """The distributions of programs, each once. Raises UsageError: there is none."""
    actions = (action for clause in clauses for action in clause.actions if isinstance(action, Aggregate))
    found = {one.aggregation.number: one.aggregation for one in actions if is_distribution(one.aggregation)}
    if not found:
        raise UsageError("no program has a distribution: give one like 'fbt::kmalloc:entry { @ = quantize(arg0); }'")
    return list(found.values())


class HeatMapDocument:
    """Implements `document_output.Document`."""

    def __init__(
        self, output: BinaryIO, aggregations: Sequence[Aggregation], values: JsonValues, title: str, start: int
    ) -> None:
        """Nothing is written before the end. `start` is when the run begins (ns)."""
        self._output, self._aggregations, self._values, self._title = output, aggregations, values, title
        self._added = AddedOverTime(start)

    def sample(self, now: int, added: Sequence[Contents]) -> None:
        """Add what a snapshot at `now` added to aggregations."""
        self._added.add(now, added)

    def record(self, *_: object) -> None:
        """See `Document`: records are no part of this."""

    def flush(self) -> None:
        """See `Document`: there is nothing before the end."""

    def finish(self) -> None:
        """See `Document`."""
        panels = [panel for one in self._aggregations for panel in panels_of(one, self._added, self._values)]
        what = ", ".join(f"{one.shown} = {one.function.value}()" for one in self._aggregations)
        for piece in heat_map(self._title, f"{what}, over time", panels, "values"):
            self._output.write(piece)
        self._output.flush()


def panels_of(aggregation: Aggregation, added: AddedOverTime, values: JsonValues) -> Iterator[Panel]:
    """A panel for all values of an aggregation, and if it has several keys one for each of the largest."""
    whole = added.of(aggregation)
    if whole is None:
        return
    keys = sorted(added.by_key(aggregation), key=lambda item: -_count(item[1]))
    name = aggregation.shown
    if len(keys) == 1:
        yield _panel(_title(name, aggregation, keys[0][0], values), aggregation, whole)
        return
    yield _panel(f"{name}, all keys", aggregation, whole)
    for key, bins in keys[:_KEYS]:
        yield _panel(_title(name, aggregation, key, values), aggregation, bins)


def _count(bins: TimeBins) -> int:
    return sum(sum(counts.values()) for _, counts in bins)


def _title(name: str, aggregation: Aggregation, key: Sequence[object], values: JsonValues) -> str:
    shown = [str(cell(values.value(kind, one))) for kind, one in zip(aggregation.keys, key, strict=True)]  # type: ignore[arg-type]
    return f"{name}[{', '.join(shown)}]" if shown else name


def _panel(title: str, aggregation: Aggregation, bins: TimeBins) -> Panel:
    """The buckets from the lowest to the highest that is not empty, the largest values on top."""
    rows: dict[int, dict[int, int]] = {bucket: counts for bucket, counts in bins if isinstance(bucket, int)}
    used = [bucket for bucket, counts in rows.items() if any(counts.values())]
    first, last = min(used), max(used)
    size = -(-(last - first + 1) // _ROWS)
    found = []
    for bucket in range(first, last + 1, size):
        parts = (rows.get(one, {}) for one in range(bucket, bucket + size))
        found.append(HeatRow(_label(aggregation, bucket), sum(map(Counter, parts), Counter[int]())))
    return Panel(title, list(_without_gaps(found[::-1])), bins.width, bins.columns)


def _without_gaps(rows: Iterable[HeatRow]) -> Iterator[HeatRow]:
    """Many rows without a value become one."""
    for is_empty, run in groupby(rows, lambda row: not row.counts):
        some = list(run)
        yield from [_GAP] if is_empty and len(some) > _LONGEST else some


def _label(aggregation: Aggregation, bucket: int) -> str:
    bounds = bucket_bounds(aggregation, bucket)
    return f"{bounds['value']:,}" if "value" in bounds else f"< {bounds['below']:,}"
