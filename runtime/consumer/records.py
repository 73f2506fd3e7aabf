"""The actions of a clause -> one step for each value that they record, which prints the value or performs the action.

Steps are made once per clause, since a program may record millions of times.
"""

from collections.abc import Callable, Sequence
from typing import assert_never

from kinst.runtime.clauses.environment import Symbols, Value
from kinst.runtime.consumer import printf
from kinst.runtime.consumer.aggregation_text import AggregationText
from kinst.runtime.consumer.dump import dump
from kinst.runtime.consumer.live_options import LiveOptions
from kinst.runtime.consumer.streams import OutputStream
from kinst.runtime.consumer.totals import Cell, Totals, is_distribution
from kinst.runtime.consumer.values import ValueText, hex_dump
from kinst.runtime.dlang import formats, program
from kinst.runtime.dlang.options import OptionError
from kinst.runtime.dlang.types.types import LONG, DType, Dynamic, String, bare
from kinst.targets.c_types import size_of
from kinst.targets.values import dataclass

Recorded = Value | tuple[Value, ...]
Step = Callable[[Recorded], None]


@dataclass(frozen=True, slots=True)
class StepContext:
    """What steps print to and act on. A new one is made when an option changes."""

    stream: OutputStream
    totals: Totals
    symbols: Symbols
    options: LiveOptions
    values: ValueText
    aggregations: AggregationText
    failed: Callable[[str], None]  # reports why an action could not be performed
    changed: Callable[[], None]  # called when setopt() has changed an option
    exited: Callable[[int], None]  # called with the status of exit()


class ClauseSteps:
    """Makes the steps of a clause."""

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._is_quiet = context.options.is_on("quiet")
        self._write = context.stream.write

    def steps(self, clause: program.Clause) -> list[Step]:
        """The steps of a clause: one for each recorded value."""
        return [self._step(action) for action in clause.recorded]

    def _step(self, action: program.Recording) -> Step:
        match action:
            case program.Printf():
                return self._formatted(action)
            case program.Printa():
                return self._printa(action)
            case program.Exit():
                return lambda value: self._context.exited(_number(value))
            case program.ChangeAggregation():
                return lambda value: change(self._context.totals, action, value)
            case program.SetOption():
                return lambda values: self._set_option(*option_of(values))
            case program.Truncate():
                return lambda _value: self._context.stream.truncate()
            case _:
                return self._writing(self._plain(action))

    def _writing(self, render: Callable[[Recorded], bytes]) -> Step:
        write = self._write
        return lambda value: write(render(value))

    def _plain(self, action: program.Shown) -> Callable[[Recorded], bytes]:
        """A function that renders the value of an action."""
        context = self._context
        match action:
            case program.Trace(value=value):
                traced = context.values.traced(value.type, is_quiet=self._is_quiet)
                return lambda recorded: traced(_single(recorded))
            case program.StackTrace() | program.SymbolTrace():
                return lambda recorded: context.values.dynamic(_single(recorded))
            case program.Print(type=kind):
                size = context.options.number("strsize")
                return lambda recorded: dump(_single(recorded), kind, context.symbols, size)
            case program.TraceMemory() | program.PrintMemory():
                return lambda recorded: hex_dump(recorded) if isinstance(recorded, bytes) else b""
            case _:
                assert_never(action)

    # -- formats ------------------------------------------------------------------------------------------------------

    def _formatted(self, action: program.Printf) -> Step:
        types = [argument.type for argument in action.arguments]
        shown = self._context.stream.shown if action.kind == "printf" else None
        render = printf.renderer(formats.parse(action.format), types, self._context.symbols, shown)
        if action.kind == "printf":
            write = self._context.stream.write_shown
            return lambda values: write(render(several(values)))
        if action.kind == "system":
            return lambda values: self._context.stream.run(_as_c(render(several(values))))
        if not action.format:
            return lambda _values: self._context.stream.restore()
        return lambda values: self._reopen(_as_c(render(several(values))))

    def _reopen(self, path: bytes) -> None:
        try:
            self._context.stream.reopen(path)
        except OSError as error:
            self._context.failed(f'couldn\'t freopen() "{path.decode(errors="replace")}": {error.strerror}')
        else:
            self._context.changed()  # for a terminal the guest's text is escaped, for a file it is not

    def _printa(self, action: program.Printa) -> Step:
        if action.format is None:
            return lambda _value: self._printa_plain(action.aggregations)
        types: tuple[DType, ...] = action.aggregations[0].keys
        stream = self._context.stream
        render = printf.printa_renderer(formats.parse(action.format), types, self._context.symbols, stream.shown)
        return lambda _value: self._printa_formatted(render, action.aggregations)

    def _printa_plain(self, aggregations: Sequence[program.Aggregation]) -> None:
        text = self._context.aggregations
        lines = text.single(aggregations[0]) if len(aggregations) == 1 else text.joined(aggregations)
        self._write(b"\n")
        for line in lines:
            self._write(line)
        self._mark(aggregations)

    def _printa_formatted(self, render: printf.PrintaRenderer, aggregations: Sequence[program.Aggregation]) -> None:
        totals = self._context.totals
        is_single = len(aggregations) == 1
        for row in totals.each_row(aggregations[0]) if is_single else totals.joined(aggregations):
            self._context.stream.write_shown(render(row.key, [self._cell(cell) for cell in row.cells]))
        self._mark(aggregations)

    def _cell(self, cell: Cell) -> printf.AggregateValue:
        if is_distribution(cell.aggregation):
            return lambda: self._context.aggregations.picture(cell)
        return cell.number

    def _mark(self, aggregations: Sequence[program.Aggregation]) -> None:
        """Mark aggregations as printed: they are not printed again at the end."""
        self._context.totals.mark_printed(aggregations)

    # -- setopt() -----------------------------------------------------------------------------------------------------

    def _set_option(self, name: str, value: str | None) -> None:
        try:
            self._context.options.set_while_running(name, value)
        except OptionError as error:
            given = "1" if value is None else value
            self._context.failed(f'couldn\'t set option "{name}" to "{given}": {error.why}')
        else:
            self._context.changed()


def option_of(values: Recorded) -> tuple[str, str | None]:
    """The name and the value (or None) that setopt() recorded."""
    name, *value = [_bytes(text).decode(errors="backslashreplace") for text in several(values)]
    return name, value[0] if value else None


def change(totals: Totals, action: program.ChangeAggregation, value: Recorded) -> None:
    """Perform clear, trunc, normalize or denormalize."""
    match action.kind:
        case "clear":
            totals.clear(action.aggregation)
        case "trunc":
            totals.trunc(action.aggregation, None if value is None else _argument(action, value, is_signed=True))
        case "normalize":
            totals.normalize(action.aggregation, _argument(action, value, is_signed=False))
        case _:
            totals.denormalize(action.aggregation)


def _argument(action: program.ChangeAggregation, value: Recorded, *, is_signed: bool) -> int:
    """The argument of trunc or normalize. libdtrace reads it with its type's size, but always as signed for trunc and
    as unsigned for normalize."""
    kind = LONG if action.argument is None else bare(action.argument.type)
    size = 8 if isinstance(kind, String | Dynamic) else size_of(kind) or 8
    number = _number(value) & (1 << 8 * size) - 1
    return number - (1 << 8 * size) if is_signed and number >> 8 * size - 1 else number


def _single(value: Recorded) -> Value:
    if isinstance(value, tuple):
        raise TypeError("several values where one was expected")
    return value


def several(values: Recorded) -> tuple[Value, ...]:
    """The values of an action that records several."""
    if not isinstance(values, tuple):
        raise TypeError("one value where several were expected")
    return values


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"not text: {value!r}")
    return value


def _number(value: Recorded) -> int:
    if not isinstance(value, int):
        raise TypeError(f"not a number: {value!r}")
    return value


def _as_c(text: bytes) -> bytes:
    """The text as a C string, which ends at a NUL."""
    return text.partition(b"\0")[0]
