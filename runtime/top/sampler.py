"""A traced guest between two turns of its CPUs -> a sample of it."""

import time
from collections.abc import Callable
from typing import Any, Final

from kinst.runtime.clauses.aggregations import Key
from kinst.runtime.consumer.documents.json_values import JsonValues, Style
from kinst.runtime.consumer.totals import Cell, is_distribution
from kinst.runtime.dlang.program import Aggregate, AggregatingFunction, Aggregation
from kinst.runtime.top.machines import WatchedMachine
from kinst.runtime.top.ranking import sparkline
from kinst.runtime.top.sample import Sample, Table
from kinst.runtime.tracing.tracer import Output, Tracer
from kinst.targets.visible import visible

INTERVAL: Final = 500_000_000  # ns of the host's time between two samples
_PATIENCE: Final = 20  # taking samples may take a twentieth of the time
_LONGEST: Final = 4 * INTERVAL  # but what is shown is never older; the first sample takes long, since names are read
_GROWING: Final = frozenset({AggregatingFunction.COUNT, AggregatingFunction.SUM})
_SHOWN: Final = Style(hex, lambda _address, symbol: symbol.rpartition("`")[2], bytes.hex)


class Sampler:
    """Takes samples of one guest, in its thread."""

    def __init__(self, machine: WatchedMachine, tracer: Tracer, output: Output) -> None:
        """`tracer` has its programs enabled; what it drains goes to `output`."""
        self._machine, self._tracer, self._output = machine, tracer, output
        self._values = JsonValues(tracer.symbols, _SHOWN)
        actions = [action for clause in tracer.clauses for action in clause.actions]
        found = {one.aggregation.number: one.aggregation for one in actions if isinstance(one, Aggregate)}
        self._aggregations = list(found.values())
        self._texts: dict[int, dict[Key, str]] = {number: {} for number in found}  # keys, as they are shown
        self._start = time.monotonic_ns()
        self._stood = 0  # ns
        self._next = 0
        self.latest: Sample | None = None

    def stood_still(self, duration: int) -> None:
        """The guest was paused for that many ns of the host's time."""
        self._stood += duration
        self._machine.go_on(duration)

    def take_if_due(self, *, is_due: Callable[[], bool]) -> None:
        """Take a sample if the interval is over, or `is_due`."""
        now = time.monotonic_ns()
        if now >= self._next or is_due():
            self.take()
            self._next = now + min(max(INTERVAL, _PATIENCE * (time.monotonic_ns() - now)), _LONGEST)

    def take(self) -> Sample:
        """Take a sample, which becomes the latest."""
        self._tracer.read(self._output)
        tables = tuple(map(self._table, self._aggregations))
        machine = self._machine
        cpus, tasks = tuple(machine.cpus()), tuple(machine.tasks())
        wall = time.monotonic_ns() - self._start - self._stood
        self.latest = Sample(wall, machine.now(), tables, cpus, tasks)
        return self.latest

    # -- aggregations -------------------------------------------------------------------------------------------------

    def _table(self, aggregation: Aggregation) -> Table:
        texts, is_picture = self._texts[aggregation.number], is_distribution(aggregation)
        values: dict[str, int] = {}
        pictures: dict[str, str] = {}
        for row in self._tracer.totals.unsorted_rows(aggregation):
            text = texts.get(row.key)
            if text is None:
                text = texts[row.key] = self._key(aggregation, row.key)
            cell = row.cells[0]
            values[text] = sum(cell.buckets.values()) if is_picture else cell.number
            if is_picture:
                pictures[text] = _picture(cell)
        heading = "values" if is_picture else aggregation.function.value
        is_growing = is_picture or aggregation.function in _GROWING
        return Table(aggregation.shown, heading, values, pictures, is_growing)

    def _key(self, aggregation: Aggregation, key: Key) -> str:
        shown = [self._values.value(kind, value) for kind, value in zip(aggregation.keys, key, strict=True)]
        return "  ".join(map(_text, shown)) or "all"


def _text(value: Any) -> str:
    """One value of a key, on one line: a stack from its innermost frame on."""
    if isinstance(value, list):
        return " < ".join(map(_text, value))
    return visible(str(value))


def _picture(cell: Cell) -> str:
    """A distribution, from its lowest bucket that is not empty to the highest."""
    buckets = {bucket: count for bucket, count in cell.buckets.items() if count > 0}
    if not buckets:
        return ""
    return sparkline([buckets.get(bucket, 0) for bucket in range(min(buckets), max(buckets) + 1)])
