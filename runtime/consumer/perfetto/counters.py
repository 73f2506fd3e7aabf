"""Aggregations -> counters of a Perfetto trace, one for each key."""

from collections.abc import Mapping, Sequence

from kinst.runtime.clauses.environment import Value
from kinst.runtime.consumer.documents.json_values import Json, JsonValues
from kinst.runtime.consumer.perfetto.trace import PerfettoTrace, Track
from kinst.runtime.consumer.totals import Row, Totals, is_distribution
from kinst.runtime.dlang.program import Aggregate, Aggregation, Clause, Printa, spelled


class Counters:
    """The tracks of aggregations. Those that the program prints with printa() get the values that it printed, at that
    time; the others are sampled at each snapshot."""

    def __init__(self, trace: PerfettoTrace, clauses: Sequence[Clause], totals: Totals, values: JsonValues) -> None:
        self._trace, self._clauses, self._totals, self._values = trace, clauses, totals, values
        self._groups: dict[str, Track] = {}
        self._shown: dict[tuple[str, str], tuple[Track, int]] = {}  # by aggregation and key: the last value, too
        self._texts: dict[tuple[int, tuple[Value, ...]], str] = {}  # keys as they are shown
        self._sampled: list[Aggregation] | None = None

    def printed(self, time: int, aggregation: Mapping[str, Json]) -> None:
        """An aggregation was printed, as an object of `json_output`."""
        shown = spelled(aggregation["aggregation-name"])
        for row in aggregation["aggregation-data"]:
            value = row["value"] if "value" in row else sum(bucket["count"] for bucket in row["buckets"])
            self._count(time, shown, _text(row["keys"]), value)

    def sample(self, time: int) -> None:
        """Add the values of those that no printa() prints."""
        if self._sampled is None:
            self._sampled = _unprinted(self._clauses)
        for aggregation in self._sampled:
            for row in self._totals.unsorted_rows(aggregation):
                self._count(time, aggregation.shown, self._key(aggregation, row), _value(row))

    def _key(self, aggregation: Aggregation, row: Row) -> str:
        shown = self._texts.get((aggregation.number, row.key))
        if shown is None:
            shown = self._texts[aggregation.number, row.key] = _text(self._values.keys(aggregation.keys, row))
        return shown

    def _count(self, time: int, name: str, key: str, value: int) -> None:
        track, before = self._shown.get((name, key)) or (self._track(name, key), None)
        if value != before:
            self._trace.count(track, time, value)
            self._shown[name, key] = track, value

    def _track(self, name: str, key: str) -> Track:
        if not key:
            return self._trace.track(name, is_counter=True)
        if name not in self._groups:
            self._groups[name] = self._trace.track(name)
        return self._trace.track(key, self._groups[name], is_counter=True)


def _unprinted(clauses: Sequence[Clause]) -> list[Aggregation]:
    """The aggregations that no printa() prints, each once."""
    actions = [action for clause in clauses for action in clause.actions]
    printed = {one.number for action in actions if isinstance(action, Printa) for one in action.aggregations}
    found = {action.aggregation.number: action.aggregation for action in actions if isinstance(action, Aggregate)}
    return [aggregation for number, aggregation in found.items() if number not in printed]


def _value(row: Row) -> int:
    """The number of a row: of a distribution how many values are in it."""
    cell = row.cells[0]
    return sum(cell.buckets.values()) if is_distribution(cell.aggregation) else cell.number


def _text(keys: Sequence[Json]) -> str:
    """Keys as the name of a track."""
    return ", ".join(map(_key_text, keys))


def _key_text(key: Json) -> str:
    match key:
        case {"symbol": symbol}:
            return str(symbol)
        case [{"symbol": _}, *_]:  # a stack: outermost first, as in a flame graph
            return ";".join(_key_text(part) for part in reversed(key))
        case _:
            return str(key)
