"""Records and aggregations -> one CSV table. `docs/formats.md` describes its columns."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, Final

from kinst.runtime.clauses.environment import Record
from kinst.runtime.consumer.json_values import Json, JsonValues
from kinst.runtime.consumer.records import NOT_RECORDED
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Aggregate, Clause
from kinst.runtime.providers.provider import Probe

SCHEMA: Final = 1
_PROBE: Final = ("timestamp", "cpu", "id", "provider", "module", "function", "name")
_VALUES: Final = ("value", "stack-frames", "memory")  # the keys of `json_output`'s objects that have recorded values
_NO_PROBE: Final = ("",) * len(_PROBE)
Cell = str | int


class CsvDocument:
    """Implements `document_output.Document`."""

    def __init__(self, output: BinaryIO, clauses: Sequence[Clause], totals: Totals, values: JsonValues) -> None:
        """Nothing is written yet."""
        self._output, self._totals, self._values = output, totals, values
        self._text = io.StringIO()
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._keys = max(map(_key_count, clauses), default=0)
        self._columns = max([1, *map(_value_count, clauses)])
        keys = [f"key{number}" for number in range(1, self._keys + 1)]
        columns = [f"value{number}" for number in range(1, self._columns + 1)]
        self._rows.writerow(
            ["schema", "kind", *_PROBE, "message", "aggregation", "aggregate", "bucket", *keys, *columns]
        )

    def record(self, record: Record, probe: Probe, told: Sequence[Json]) -> None:
        """See `Document`."""
        cpu, identifier, _, time, _ = record
        fired = (time, cpu, identifier, probe.provider, probe.module, probe.function, probe.name)
        message = "".join(one["message"] for one in told if "message" in one)
        values = [_cell(one[key]) for one in told for key in _VALUES if key in one]
        self._row("record", fired, (message, "", "", ""), (), values)
        for one in told:
            for aggregation in one.get("aggregations", ()):
                self._aggregation(fired, aggregation)

    def _aggregation(self, fired: Sequence[Cell], told: Mapping[str, Json]) -> None:
        name = program.spelled(told["aggregation-name"])
        for row in told["aggregation-data"]:
            keys = [_cell(key) for key in row["keys"]]
            for bucket, value in _numbers(row):
                self._row("aggregation", fired, ("", name, told["function"], bucket), keys, [value])

    def _row(
        self, kind: str, fired: Sequence[Cell], what: Sequence[Cell], keys: Sequence[Cell], values: Sequence[Cell]
    ) -> None:
        keys = [*keys, *[""] * (self._keys - len(keys))]
        self._rows.writerow([SCHEMA, kind, *fired, *what, *keys, *values, *[""] * (self._columns - len(values))])

    def flush(self) -> None:
        """See `Document`."""
        self._output.write(self._text.getvalue().encode("utf-8", "backslashreplace"))
        self._text.seek(0)
        self._text.truncate()
        self._output.flush()

    def finish(self) -> None:
        """See `Document`."""
        for aggregation in self._totals.unprinted():
            self._aggregation(_NO_PROBE, self._values.aggregation(aggregation, self._totals.rows(aggregation)))
        self.flush()


def _numbers(row: Mapping[str, Json]) -> Iterator[tuple[Cell, int]]:
    """The buckets of a row with their counts; a bucket without a smallest value is -inf, and a number has no bucket."""
    if "value" in row:
        yield "", row["value"]
    for bucket in row.get("buckets", ()):
        yield bucket.get("value", "-inf"), bucket["count"]


def _cell(value: Json) -> Cell:
    """A value as the text of a cell: symbols by name, stacks innermost first, structs and arrays as JSON."""
    match value:
        case int() | str():
            return value
        case None:
            return ""
        case {"symbol": symbol}:
            return str(symbol)
        case [{"symbol": _}, *_]:
            return ";".join(str(frame["symbol"]) for frame in value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _key_count(clause: Clause) -> int:
    return max((len(action.keys) for action in clause.actions if isinstance(action, Aggregate)), default=0)


def _value_count(clause: Clause) -> int:
    return sum(_values_of(action) for action in clause.actions if not isinstance(action, NOT_RECORDED))


def _values_of(action: program.Action) -> int:
    """How many values an action leaves."""
    match action:
        case program.Printf(kind="printf"):
            return len(action.arguments)
        case (
            program.Trace()
            | program.Print()
            | program.SymbolTrace()
            | program.StackTrace()
            | program.TraceMemory()
            | program.PrintMemory()
        ):
            return 1
        case _:
            return 0
