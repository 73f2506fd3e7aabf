"""Rows of arguments as Python has them -> calls, and what became of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from kinst.runtime.machine.calling.arguments import Argument
from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.calling.template import Call, CallTemplate, Given, made, parse_template, value_of
from kinst.runtime.tracing.results.recorded import Records
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

Row = Given | Sequence[Given] | Mapping[str, Given]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of `Trace.call_each`."""

    row: Row  # what it was given
    text: str  # the call, as `kinst-run --call` takes it
    called: Called
    records: Records  # what clauses have recorded in it

    @property
    def result(self) -> int | None:
        """What the function returned, as 64 unsigned bits; None: it did not."""
        return self.called.result


def calls_of_rows(text: str, rows: Iterable[Row]) -> Iterator[tuple[Row, Call]]:
    """The calls that rows ask for, made as they are wanted: a value, or several for $1, $2... or a mapping for $name.
    A call without arguments, `f()`, has all of them from the row. Raises UsageError: a row does not fit."""
    template = parse_template(text)
    for number, row in enumerate(rows, 1):
        yield row, _call(template, row, f"row {number}")


def _call(template: CallTemplate, row: Row, where: str) -> Call:
    names = tuple(row) if isinstance(row, Mapping) else ()
    given = (
        row.values() if isinstance(row, Mapping) else row if isinstance(row, tuple | list) else (cast("Given", row),)
    )
    values: tuple[Argument, ...] = tuple(value_of(where, at, one) for at, one in enumerate(given, 1))
    if not template.arguments:
        return made(template.function, values)
    if len(values) < template.width:
        raise UsageError(f"{where}: has {len(values)} of {template.width} arguments")
    return template.binder(names, where)(values)
