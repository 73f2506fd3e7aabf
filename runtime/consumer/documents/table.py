"""Records and aggregations -> rows of one table, in any file format. `docs/formats.md` describes its columns.

A row is a record, or a key of an aggregation (of a distribution a bucket). A cell that does not apply is None.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import zip_longest
from typing import Final, Protocol, assert_never

from kinst.runtime.clauses.environment import Record
from kinst.runtime.consumer.documents.json_values import Json, JsonValues
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Aggregate, Clause
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.runtime.providers.provider import Probe
from kinst.targets.c_types import Integer, size_of, strip
from kinst.targets.values import dataclass

SCHEMA: Final = 1
LOWEST: Final = "-inf"  # the smallest value of a bucket without a lower bound
VALUES: Final = ("value", "stack-frames", "memory")  # the keys of `json_output`'s objects that have recorded values
_NO_PROBE: Final = (None,) * 7
Cell = str | int | None


class CellKind(Enum):
    """The type of a column's cells."""

    INTEGER = "int64"
    UNSIGNED = "uint64"
    EITHER = "of both"
    TEXT = "text"

    def __or__(self, other: "CellKind") -> "CellKind":
        """The narrowest kind that holds both."""
        if self is other:
            return self
        return CellKind.TEXT if CellKind.TEXT in (self, other) else CellKind.EITHER


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table."""

    name: str
    kind: CellKind


PROBE: Final = (
    Column("timestamp", CellKind.INTEGER),  # ns
    Column("cpu", CellKind.INTEGER),
    Column("id", CellKind.INTEGER),
    *(Column(name, CellKind.TEXT) for name in ("provider", "module", "function", "name")),
)
WHAT: Final = (
    *(Column(name, CellKind.TEXT) for name in ("message", "aggregation", "aggregate")),
    Column("bucket", CellKind.INTEGER),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row. `fired` are the cells of `PROBE`, `what` those of `WHAT`; `number` is the value of an aggregation."""

    kind: str  # record or aggregation
    fired: Sequence[Cell]
    what: Sequence[Cell]
    number: int | None
    keys: Sequence[Cell]
    values: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns that depend on the program: the keys of its aggregations, and the values that its clauses record."""

    keys: tuple[Column, ...]
    values: tuple[Column, ...]


class RowWriter(Protocol):
    """Writes rows into a file of one format."""

    def write(self, row: Row) -> None:
        """Add a row."""
        ...

    def flush(self) -> None:
        """Write as much as a reader can use already."""
        ...

    def finish(self) -> None:
        """Write what comes at the end."""
        ...


class TableDocument:
    """Implements `document_output.Document`."""

    def __init__(self, writer: RowWriter, totals: Totals, values: JsonValues) -> None:
        self._writer, self._totals, self._values = writer, totals, values

    def record(self, record: Record, probe: Probe, objects: Sequence[Json]) -> None:
        """See `Document`."""
        cpu, identifier, _, time, _ = record
        fired = (time, cpu, identifier, probe.provider, probe.module, probe.function, probe.name)
        message = "".join(one["message"] for one in objects if "message" in one)
        values = [cell(one[key]) for one in objects for key in VALUES if key in one]
        self._writer.write(Row("record", fired, (message, None, None, None), None, (), values))
        for one in objects:
            for aggregation in one.get("aggregations", ()):
                self._aggregation(fired, aggregation)

    def _aggregation(self, fired: Sequence[Cell], printed: Mapping[str, Json]) -> None:
        name = program.spelled(printed["aggregation-name"])
        for row in printed["aggregation-data"]:
            keys = [cell(key) for key in row["keys"]]
            for bucket, number in _numbers(row):
                what = (None, name, printed["function"], bucket)
                self._writer.write(Row("aggregation", fired, what, number, keys, ()))

    def flush(self) -> None:
        """See `Document`."""
        self._writer.flush()

    def finish(self) -> None:
        """See `Document`."""
        for aggregation in self._totals.unprinted():
            self._aggregation(_NO_PROBE, self._values.aggregation(aggregation, self._totals.rows(aggregation)))
        self._writer.finish()


def _numbers(row: Mapping[str, Json]) -> Iterator[tuple[Cell, int]]:
    """The buckets of a row with their counts; a number has no bucket."""
    if "value" in row:
        yield None, row["value"]
    for bucket in row.get("buckets", ()):
        yield bucket.get("value", LOWEST), bucket["count"]


def cell(value: Json) -> Cell:
    """A value as a cell: symbols by name, stacks innermost first, structs and arrays as JSON."""
    match value:
        case int() | str() | None:
            return value
        case {"symbol": symbol}:
            return str(symbol)
        case [{"symbol": _}, *_]:
            return ";".join(str(frame["symbol"]) for frame in value)
        case _:
            return json.dumps(value, ensure_ascii=False)


# -- columns ----------------------------------------------------------------------------------------------------------


def shape_of(clauses: Sequence[Clause]) -> Shape:
    """The columns for keys and values that programs need."""
    aggregations = [action for clause in clauses for action in clause.actions if isinstance(action, Aggregate)]
    keys = [[kind_of(kind) for kind in one.aggregation.keys] for one in aggregations]
    values = [[kind for action in clause.recorded for kind in _values_of(action)] for clause in clauses]
    return Shape(_columns("key", keys), _columns("value", values))


def _columns(name: str, kinds: Iterable[Sequence[CellKind]]) -> tuple[Column, ...]:
    found: list[CellKind] = []
    for row in kinds:
        found = [
            one if other is None else other if one is None else one | other for one, other in zip_longest(found, row)
        ]
    return tuple(Column(f"{name}{number}", kind) for number, kind in enumerate(found, 1))


def _values_of(action: program.Recording) -> list[CellKind]:
    """The kinds of the values that an action records."""
    if isinstance(action, program.Performed):
        return []
    match action:
        case program.Printf():
            return [kind_of(argument.type) for argument in action.arguments] if action.kind == "printf" else []
        case program.Trace():
            return [kind_of(action.value.type)]
        case program.Print():
            return [kind_of(action.type)]
        case program.SymbolTrace() | program.StackTrace() | program.TraceMemory() | program.PrintMemory():
            return [CellKind.TEXT]
        case _:
            assert_never(action)


def kind_of(kind: DType) -> CellKind:
    """The kind of cell that `JsonValues` makes of a type."""
    plain = bare(kind)
    if isinstance(plain, String | Dynamic):
        return CellKind.TEXT
    match strip(plain):
        case Integer(is_signed=is_signed) as integer if (size := size_of(integer) or 8) <= 8:
            # An unsigned number of 4 bytes fits int64, too: so most columns need no wider type.
            return CellKind.INTEGER if is_signed or size < 8 else CellKind.UNSIGNED
        case _:
            return CellKind.TEXT
