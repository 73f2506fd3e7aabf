"""printf() and printa(): a parsed format and recorded values -> bytes.

A format is compiled to a renderer once. Then a record costs one use of Python's `%` on a template, plus a call for each
value that must be truncated or looked up. libdtrace passes each conversion to C's printf; where Python's `%` differs
from C's, the text is made here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from kinst.runtime.clauses.environment import Symbols, Value
from kinst.runtime.consumer import printf_values
from kinst.runtime.dlang.formats import MOST_COLUMNS, Conversion, Format, Mark, Shows
from kinst.runtime.dlang.types.conversions import is_signed, is_string
from kinst.runtime.dlang.types.types import INT64, DType
from kinst.targets.values import dataclass

Renderer = Callable[[Sequence[Value]], bytes]
# An aggregation's value, normalized: its number, or a function that writes its distribution.
AggregateValue = int | Callable[[], bytes]
Shown = Callable[[bytes], bytes] | None  # escapes a guest's text for a terminal; None: not needed
PrintaRenderer = Callable[[Sequence[Value], Sequence[AggregateValue]], bytes]

_DYNAMIC: Final = Mark.ANY_WIDTH | Mark.ANY_PRECISION
_WORD: Final = (1 << 64) - 1


def render(template: Format, types: Sequence[DType], values: Sequence[Value], symbols: Symbols) -> bytes:
    """The output of one printf(). For a format that is used repeatedly, keep `renderer(...)`."""
    return renderer(template, types, symbols)(values)


def renderer(template: Format, types: Sequence[DType], symbols: Symbols, shown: Shown = None) -> Renderer:
    """A function from the values of a record to the output. `types` are those of all arguments after the format. The
    checker has compared them with the format. The literal text of the format is the program's, and never escaped."""
    if any(conversion.marks & _DYNAMIC for conversion in template.conversions):
        row = _Row(template, types, symbols, shown)
        return lambda values: row.render(values, ())
    return _static_renderer(template, types, symbols, shown)


def printa_renderer(template: Format, types: Sequence[DType], symbols: Symbols, shown: Shown = None) -> PrintaRenderer:
    """A function from the keys and aggregated values of a row to the output. Plain conversions take the keys (of
    `types`) in order; those with `@` take the aggregations in order, and further ones take the last again."""
    return _Row(template, types, symbols, shown).render


def _static_renderer(template: Format, types: Sequence[DType], symbols: Symbols, shown: Shown) -> Renderer:
    """The renderer for a format in which every width is known: one template for all records."""
    pieces: list[bytes] = []
    fields: list[_Field] = []
    remaining = iter(types)
    for conversion in template.conversions:
        pieces.append(conversion.prefix)
        if conversion.kind.shows is Shows.PERCENT:
            pieces.append(b"%%")
        else:
            fields.append(_field(conversion, next(remaining, INT64), symbols, shown))
            pieces.append(fields[-1].piece)
    pieces.append(template.suffix)
    is_plain = all(field.convert is None for field in fields)
    return _joined(b"".join(pieces), [field.convert or _as_it_is for field in fields], is_plain=is_plain)


def _joined(pieces: bytes, converters: list[Callable[[Value], object]], *, is_plain: bool) -> Renderer:
    # One and two values are most formats of programs that print a line per hit: without a loop they take less than half
    # the time.
    match converters:
        case []:
            text = pieces % ()
            return lambda _values: text
        case _ if is_plain:
            count = len(converters)
            return lambda values: pieces % tuple(values[:count])
        case [first]:
            return lambda values: pieces % (first(values[0]),)
        case [first, second]:
            return lambda values: pieces % (first(values[0]), second(values[1]))
        case _:
            return lambda values: pieces % tuple([c(value) for c, value in zip(converters, values, strict=False)])


# -- printa(), and widths that are arguments (`*`) --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """A conversion, and the indices of its width, precision and value among the arguments. With `@`, `value_at` is an
    index of aggregated values. `field` is None if the width is an argument."""

    conversion: Conversion
    type: DType
    value_at: int
    width_at: int | None
    precision_at: int | None
    field: "_Field | None"


class _Row:
    """The general renderer."""

    def __init__(self, template: Format, types: Sequence[DType], symbols: Symbols, shown: Shown) -> None:
        self._symbols = symbols
        self._shown = shown
        self._suffix = template.suffix
        self._types = tuple(types)
        self._steps: list[_Step | bytes] = []
        self._taken = self._aggregated = self._columns = 0
        for conversion in template.conversions:
            self._steps.append(conversion.prefix)
            self._steps.append(b"%" if conversion.kind.shows is Shows.PERCENT else self._step(conversion))

    def _step(self, conversion: Conversion) -> _Step:
        marks = conversion.marks
        width_at = self._take() if Mark.ANY_WIDTH in marks else None
        precision_at = self._take() if Mark.ANY_PRECISION in marks else None
        if Mark.AGGREGATION in marks:
            types: tuple[DType, ...] = ()
            value_at = self._aggregated
            self._aggregated += 1
        else:
            value_at, types = self._take(), self._types
        kind = types[value_at] if value_at < len(types) else INT64
        field = None if marks & _DYNAMIC else _field(conversion, kind, self._symbols, self._shown)
        return _Step(conversion, kind, value_at, width_at, precision_at, field)

    def _take(self) -> int:
        self._taken += 1
        return self._taken - 1

    def render(self, arguments: Sequence[Value], aggregated: Sequence[AggregateValue]) -> bytes:
        """The output for one row."""
        self._columns = 0  # of conversions whose width is an argument: a guest's number must not print gigabytes
        parts = [step if isinstance(step, bytes) else self._value(step, arguments, aggregated) for step in self._steps]
        return b"".join(parts) + self._suffix

    def _value(self, step: _Step, arguments: Sequence[Value], aggregated: Sequence[AggregateValue]) -> bytes:
        field = step.field
        if field is None:
            conversion = _with_columns(step, arguments)
            if self._columns + conversion.columns > MOST_COLUMNS:
                return b"<%d columns: at most %d can be printed>" % (conversion.columns, MOST_COLUMNS)
            self._columns += conversion.columns
            field = _field(conversion, step.type, self._symbols, self._shown)
        if Mark.AGGREGATION not in step.conversion.marks:
            return field.spell(arguments[step.value_at])
        value = aggregated[min(step.value_at, len(aggregated) - 1)]
        return field.spell(value) if isinstance(value, int) else value()


def _with_columns(step: _Step, arguments: Sequence[Value]) -> Conversion:
    """The conversion with its width and precision taken from the arguments. As in C, a negative width means `-` and its
    absolute value, and a negative precision means none."""
    conversion = step.conversion
    if step.width_at is not None:
        width = printf_values.signed(printf_values.number(arguments[step.width_at]), 32)
        left = Mark.LEFT if width < 0 else Mark.NONE
        conversion = replace(conversion, width=abs(width), marks=conversion.marks | left)
    if step.precision_at is not None:
        precision = printf_values.signed(printf_values.number(arguments[step.precision_at]), 32)
        conversion = replace(conversion, precision=max(0, precision))
    return conversion


# -- one conversion ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Field:
    """A directive for Python, and a function that converts a value for it (None: it needs no conversion)."""

    piece: bytes
    convert: Callable[[Value], object] | None = None

    def spell(self, value: Value) -> bytes:
        """The text of this directive alone."""
        return self.piece % (self.convert(value) if self.convert else value,)


def _as_it_is(value: Value) -> Value:
    return value


def _field(conversion: Conversion, kind: DType, symbols: Symbols, shown: Shown) -> _Field:
    if shown is None or conversion.kind.shows not in _GUEST_TEXT:
        return _plain_field(conversion, kind, symbols)
    # The text is escaped before it is padded, since an escape is wider than the character.
    bare = _plain_field(replace(conversion, width=0, marks=Mark.NONE), kind, symbols)
    return _Field(_piece(replace(conversion, precision=0), "-", "s"), lambda value: shown(bare.spell(value)))


def _plain_field(conversion: Conversion, kind: DType, symbols: Symbols) -> _Field:
    match conversion.kind.shows:
        case Shows.DECIMAL | Shows.SIGNED | Shows.UNSIGNED | Shows.OCTAL | Shows.HEX:
            return _integer_field(conversion, kind)
        case Shows.FLOAT:
            piece = _piece(conversion, "#0-+ ", conversion.kind.name[-1])
            return _Field(piece, lambda value: printf_values.floating(value, kind))
        case Shows.TEXT if is_string(kind):
            return _Field(_piece(conversion, "-", "s"))
        case Shows.CHARACTER:
            plain = replace(conversion, precision=0)
            return _Field(_piece(plain, "-", "c"), lambda value: printf_values.number(value) & 0xFF)
        case Shows.STACK:
            return _stack_field(conversion, symbols)
        case Shows.SYMBOL | Shows.USER_SYMBOL as shows:
            which = "addr" if shows is Shows.SYMBOL else "uaddr"
            return _Field(_piece(conversion, "-", "s"), lambda value: printf_values.symbol(value, symbols, which))
        case shows:
            return _Field(_piece(conversion, "-", "s"), _TEXTS[shows])


_TEXTS: Final[dict[Shows, Callable[[Value], bytes]]] = {
    Shows.TEXT: printf_values.text,
    Shows.ESCAPED_TEXT: lambda value: printf_values.escaped(printf_values.text(value)),
    Shows.ESCAPED_CHARACTER: lambda value: printf_values.escaped(bytes((printf_values.number(value) & 0xFF,))),
    Shows.WIDE_TEXT: printf_values.wide_text,
    Shows.WIDE_CHARACTER: lambda value: printf_values.wide_character(printf_values.number(value)),
    Shows.TIME: printf_values.calendar_time,
    Shows.DATE: printf_values.mail_date,
    Shows.PORT: printf_values.port,
}
_GUEST_TEXT: Final = (Shows.TEXT, Shows.CHARACTER, Shows.WIDE_TEXT, Shows.WIDE_CHARACTER)  # these may contain any bytes
_MARKS: Final = {"#": Mark.ALTERNATE, "0": Mark.ZEROS, "-": Mark.LEFT, "+": Mark.PLUS, " ": Mark.SPACE}


def _piece(conversion: Conversion, allowed: str, letter: str) -> bytes:
    """The directive for Python, with the flags that apply to it."""
    marks = "".join(mark for mark in allowed if _MARKS[mark] in conversion.marks)
    width = str(conversion.width) if conversion.width else ""
    precision = f".{conversion.precision}" if conversion.precision else ""
    return f"%{marks}{width}{precision}{letter}".encode()


def _integer_field(conversion: Conversion, kind: DType) -> _Field:
    """The field of an integer. libdtrace takes the size from the recorded value, so that %d prints a long as %ld would,
    and the sign of %d and %i from the type."""
    shows = conversion.kind.shows
    # C ignores `0` beside a precision or `-`; Python would pad with zeros.
    zeros = "" if conversion.precision or Mark.LEFT in conversion.marks else "0"
    bits = printf_values.bits_of(kind)
    if shows is Shows.SIGNED or (shows is Shows.DECIMAL and is_signed(kind)):
        return _Field(_piece(conversion, zeros + "-+ ", "d"), _cut_signed(bits, kind))
    letter = {Shows.OCTAL: "o", Shows.HEX: conversion.kind.name[-1].replace("p", "x")}.get(shows, "d")
    if Mark.ALTERNATE in conversion.marks and letter != "d":
        return _Field(
            b"%s", lambda value: _alternate(conversion, letter, printf_values.number(value) & (1 << bits) - 1)
        )
    return _Field(_piece(conversion, zeros + "-", letter), _cut_unsigned(bits, kind))


def _cut_signed(bits: int, kind: DType) -> Callable[[Value], object] | None:
    if bits == 64 and is_signed(kind):
        return None  # the value is always in this range
    half, mask = 1 << bits - 1, (1 << bits) - 1
    return lambda value: (value + half & mask) - half  # type: ignore[operator]  # the checker saw that it is a number


def _cut_unsigned(bits: int, kind: DType) -> Callable[[Value], object] | None:
    if bits == 64 and not is_signed(kind):
        return None
    mask = (1 << bits) - 1
    return lambda value: value & mask  # type: ignore[operator]  # as above


def _alternate(conversion: Conversion, letter: str, value: int) -> bytes:
    """A number with `#`: C puts 0x before a number other than 0, and makes octal numbers begin with 0, where Python
    writes 0x0 and 0o17."""
    digits = f"{value:{letter}}".rjust(conversion.precision, "0")
    if letter == "o" and not digits.startswith("0"):
        digits = "0" + digits
    sign = "0" + letter if value and letter != "o" else ""
    if Mark.LEFT in conversion.marks:
        return (sign + digits).ljust(conversion.width).encode()
    if Mark.ZEROS in conversion.marks and not conversion.precision:
        digits = digits.rjust(conversion.width - len(sign), "0")
    return (sign + digits).rjust(conversion.width).encode()


def _stack_field(conversion: Conversion, symbols: Symbols) -> _Field:
    """The field of %k: a newline, then a line for each frame. With `-`, the width is the indentation; without, each
    name is padded to the width."""
    is_left = Mark.LEFT in conversion.marks
    line = _piece(replace(conversion, width=0, marks=Mark.NONE) if is_left else conversion, "", "s") + b"\n"
    indent = b" " * conversion.width if is_left else b""

    def lines(value: Value) -> bytes:
        return b"\n" + b"".join([indent + line % frame for frame in printf_values.stack_frames(value, symbols)])

    return _Field(b"%s", lines)
