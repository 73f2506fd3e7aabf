"""The actions that a record has values of -> objects that describe them. Actions that waited for this are performed.

`json_output` describes the shapes; the caller decides what values and addresses look like.
"""

from collections.abc import Iterator, Sequence

from kinst.runtime.clauses.environment import Stack, Symbols
from kinst.runtime.consumer import distributions, printf
from kinst.runtime.consumer.json_values import Json, JsonValues, text
from kinst.runtime.consumer.live_options import LiveOptions
from kinst.runtime.consumer.records import NOT_RECORDED, Recorded, change, option_of
from kinst.runtime.consumer.totals import Cell, Totals, is_distribution
from kinst.runtime.dlang import formats, program
from kinst.runtime.dlang.options import OptionError
from kinst.runtime.dlang.types.type_names import describe as describe_type
from kinst.runtime.dlang.types.types import SYMBOL


class PerformedActions:
    """Performs actions. `status` is that of the last exit()."""

    def __init__(self, totals: Totals, symbols: Symbols, options: LiveOptions, values: JsonValues) -> None:
        self.status: int | None = None
        self._totals = totals
        self._symbols = symbols
        self._options = options
        self._values = values

    def of_record(self, clause: program.Clause, values: Sequence[Recorded]) -> list[Json]:
        """One or more objects for each action of the clause that recorded a value."""
        actions = [action for action in clause.actions if not isinstance(action, NOT_RECORDED)]
        return [
            shown for action, value in zip(actions, values, strict=True) for shown in self._performed(action, value)
        ]

    def _performed(self, action: program.Action, value: Recorded) -> Iterator[Json]:
        match action:
            case program.Printf():
                yield from self._formatted(action, value)
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
                yield self._value(action, value)

    def _value(self, action: program.Action, value: Recorded) -> Json:
        if isinstance(value, tuple):
            raise TypeError(f"several values of {action}")
        match action:
            case program.Print(type=kind):
                return {"type": describe_type(kind), "value": self._values.value(kind, value)}
            case program.Trace(value=expression):
                return {"value": self._values.value(expression.type, value)}
            case program.StackTrace() if isinstance(value, Stack):
                return {"stack-frames": self._values.stack(value)}
            case program.SymbolTrace():
                return {"value": self._values.value(SYMBOL, value)}
            case _:
                return {"memory": self._values.memory(value if isinstance(value, bytes) else b"")}

    def _formatted(self, action: program.Printf, values: Recorded) -> Iterator[Json]:
        if not isinstance(values, tuple):
            raise TypeError("one value where several were expected")
        types = [argument.type for argument in action.arguments]
        message = printf.render(formats.parse(action.format), types, values, self._symbols)
        match action.kind:
            case "system":
                command = message.partition(b"\0")[0]
                import subprocess  # most programs run no command

                done = subprocess.run([b"/bin/sh", b"-c", command], check=False, stdout=subprocess.PIPE)
                yield {"system": text(message), "printed": text(done.stdout)}
            case "freopen":
                yield {"freopen": text(message)}
            case _:
                yield {"message": text(message)}
                for kind, value in zip(types, values, strict=True):
                    yield {"value": self._values.value(kind, value)}

    def _printa(self, action: program.Printa) -> Iterator[Json]:
        aggregations = action.aggregations
        alone = len(aggregations) == 1
        rows = self._totals.rows(aggregations[0]) if alone else self._totals.joined(aggregations)
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
