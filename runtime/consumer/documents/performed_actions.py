"""A record -> objects that describe its actions. Actions that the consumer performs, such as clear(), are performed.

`json_output` describes the shapes; the caller decides how values and addresses are represented.
"""

from collections.abc import Iterator, Sequence

from kinst.runtime.clauses.environment import Symbols
from kinst.runtime.consumer import distributions, printf
from kinst.runtime.consumer.documents.json_values import Json, JsonValues, text
from kinst.runtime.consumer.documents.recorded_values import RecordedValues
from kinst.runtime.consumer.live_options import LiveOptions
from kinst.runtime.consumer.records import Recorded, change, option_of
from kinst.runtime.consumer.totals import Cell, Totals, is_distribution
from kinst.runtime.dlang import formats, program
from kinst.runtime.dlang.options import OptionError


class PerformedActions:
    """Performs actions. `status` is that of the last exit()."""

    def __init__(self, totals: Totals, symbols: Symbols, options: LiveOptions, values: JsonValues) -> None:
        self.status: int | None = None
        self._totals = totals
        self._symbols = symbols
        self._options = options
        self._values = values
        self._recorded = RecordedValues(symbols, values)

    def of_record(self, clause: program.Clause, values: Sequence[Recorded]) -> list[Json]:
        """One or more objects for each action of the clause that recorded a value."""
        pairs = zip(clause.recorded, values, strict=True)
        return [shown for action, value in pairs for shown in self._performed(action, value)]

    def _performed(self, action: program.Recording, value: Recorded) -> Iterator[Json]:
        match action:
            case program.Printf(kind="system" | "freopen"):
                yield self._command(action, value)
            case program.Printa():
                yield from self._printa(action)
            case program.Exit():
                self.status = value if isinstance(value, int) else 0
                yield {"exit": self.status}
            case program.ChangeAggregation():
                change(self._totals, action, value)
                argument = {} if value is None else {"argument": value}
                yield {action.kind: f"@{action.aggregation.name}", **argument}
            case program.SetOption():
                yield self._set_option(*option_of(value))
            case program.Truncate():
                yield {"ftruncate": True}
            case _:
                yield from self._recorded.objects(action, value)

    def _command(self, action: program.Printf, values: Recorded) -> Json:
        message = self._recorded.message(action, values)
        if action.kind == "freopen":
            return {"freopen": text(message)}
        import subprocess  # most programs run no command

        done = subprocess.run([b"/bin/sh", b"-c", message.partition(b"\0")[0]], check=False, stdout=subprocess.PIPE)
        return {"system": text(message), "printed": text(done.stdout)}

    def _printa(self, action: program.Printa) -> Iterator[Json]:
        aggregations = action.aggregations
        is_single = len(aggregations) == 1
        rows = self._totals.rows(aggregations[0]) if is_single else self._totals.joined(aggregations)
        if action.format is not None:
            render = printf.printa_renderer(formats.parse(action.format), aggregations[0].keys, self._symbols)
            lines = [render(row.key, [_printed(cell) for cell in row.cells]) for row in rows]
            yield {"message": text(b"".join(lines))}
        shown = [self._values.aggregation(one, rows, column) for column, one in enumerate(aggregations)]
        yield {"aggregations": shown}
        self._totals.mark_printed(aggregations)

    def _set_option(self, name: str, value: str | None) -> Json:
        done: dict[str, Json] = {"setopt": name}
        if value is not None:
            done["argument"] = value
        try:
            self._options.set_while_running(name, value)
        except OptionError as error:
            done["failed"] = error.why
        return done


def _printed(cell: Cell) -> printf.AggregateValue:
    if is_distribution(cell.aggregation):
        return lambda: distributions.render(cell.aggregation, cell.buckets, cell.normal)
    return cell.number
