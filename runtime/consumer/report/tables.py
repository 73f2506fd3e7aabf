"""What was collected of a run -> the tables of its page: records, aggregations. Values are as JSON and JavaScript have
them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from kinst.runtime.clauses.environment import Record, Symbols
from kinst.runtime.consumer.documents.json_values import JsonValues
from kinst.runtime.consumer.documents.recorded_values import RecordedValues
from kinst.runtime.consumer.documents.table import VALUES, cell
from kinst.runtime.consumer.records import Recorded
from kinst.runtime.consumer.report.collected import MOST_ROWS, Collected
from kinst.runtime.consumer.report.rows import table_row
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Aggregate, Aggregation, Clause
from kinst.runtime.providers.provider import Probe

_LONGEST: Final = 4096  # characters of a record's text


class Records:
    """The rows of records: time in ns since the start, CPU, the probe, and what was recorded, as text."""

    def __init__(
        self, clauses: Sequence[Clause], describe: Callable[[int], Probe | None], symbols: Symbols, start: int
    ) -> None:
        """`start` is when the run began (ns)."""
        self._clauses, self._describe, self._start = clauses, describe, start
        self._recorded = RecordedValues(symbols, JsonValues(symbols))
        self._names: dict[int, str] = {}

    def rows(self, collected: Collected) -> Iterator[list[Any]]:
        """The rows of the records that were collected."""
        for record in (*collected.first, *collected.last):
            yield self._row(record)

    def _row(self, record: Record) -> list[Any]:
        cpu, identifier, clause, time, values = record
        name = self._names.get(identifier)
        if name is None:
            name = self._names[identifier] = str(self._describe(identifier) or identifier)
        recorded = self._clauses[clause].recorded
        parts = [self._text(action, value) for action, value in zip(recorded, values, strict=True)]
        text = ", ".join(part for part in parts if part)
        return [time - self._start, cpu, name, text if len(text) <= _LONGEST else text[:_LONGEST] + "…"]

    def _text(self, action: program.Recording, value: Recorded) -> str:
        match action:
            case program.Printf(kind="printf"):
                return str(next(self._recorded.objects(action, value))["message"]).strip()
            case program.Printf():
                return f"{action.kind}({self._recorded.message(action, value).decode(errors='backslashreplace')})"
            case program.Printa():
                return f"printa({', '.join(one.shown for one in action.aggregations)})"
            case program.ChangeAggregation():
                return f"{action.kind}({action.aggregation.shown})"
            case program.Exit():
                return f"exit({value!r})"
            case program.SetOption() | program.Truncate():
                return ""
        objects = self._recorded.objects(action, value)
        return ", ".join(str(cell(one[key])) for one in objects for key in VALUES if key in one)


def aggregation_tables(
    aggregations: Sequence[Aggregation], totals: Totals, values: JsonValues, collected: Collected
) -> Iterator[dict[str, Any]]:
    """An object for each aggregation that has rows: `rows` are its keys and its value, or its buckets with their
    counts; `count` is how many rows there are. An aggregation that the program cleared in the end is shown as it was
    last printed."""
    for one in aggregations:
        rows = [table_row(one, row, values) for row in islice(totals.each_row(one), MOST_ROWS)]
        count = sum(1 for _ in totals.unsorted_rows(one))
        printed = collected.printed.get(one.number)
        is_printed = printed is not None and not any(row[1] for row in rows)
        if printed is not None and is_printed:
            rows, count = printed, len(printed)
        if count:
            yield {
                "name": one.shown,
                "function": one.function.value,
                "keys": len(one.keys),
                "prints": collected.prints.get(one.number, 0),
                "asPrinted": is_printed,
                "count": count,
                "rows": rows,
            }


def aggregations_of(clauses: Sequence[Clause]) -> list[Aggregation]:
    """The aggregations of programs, each once, in the order of their definition."""
    actions = (action for clause in clauses for action in clause.actions)
    found = {one.aggregation.number: one.aggregation for one in actions if isinstance(one, Aggregate)}
    return [aggregation for _, aggregation in sorted(found.items())]
