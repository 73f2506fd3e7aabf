"""Format strings of printf and the like: text -> `Format`, and the types of arguments that its conversions take."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, Flag
from typing import Final

from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.conversions import is_character, is_float, is_integer, is_string
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import DType, bare
from kinst.targets.c_types import Array, EnumType, Float, Integer, IntegerKind, Pointer, size_of
from kinst.targets.values import dataclass

# C's printf has no such limit. Here a program, or a guest by a `*`, must not print gigabytes of blanks.
MOST_COLUMNS: Final = 1 << 20  # of all conversions together
_LONGEST_NUMBER: Final = 12  # digits that are read: any more are far too many columns
_LARGEST: Final = 2**31 - 1  # an int, as C takes it
POINTER_COLUMNS: Final = 16  # what `?` stands for
_LONGEST_PREFIX: Final = 6  # how many size letters may precede a name; no name has that many


class Mark(Flag):
    """Flags between the percent sign and the conversion's name."""

    NONE = 0
    ALTERNATE = 1  # '#'
    ZEROS = 2  # '0'
    LEFT = 4  # '-'
    PLUS = 8
    SPACE = 16
    GROUPS = 32  # "'": there is no grouping in the C locale, which dtrace prints in
    ANY_WIDTH = 64  # '*'
    ANY_PRECISION = 128  # '.*'
    AGGREGATION = 256  # '@'


class Shows(Enum):
    """What a conversion prints of its value."""

    DECIMAL = "decimal, signed if the type is"
    SIGNED = "signed decimal"
    UNSIGNED = "unsigned decimal"
    OCTAL = "octal"
    HEX = "hexadecimal"
    CHARACTER = "character"
    ESCAPED_CHARACTER = "character, escaped"
    WIDE_CHARACTER = "wide character"
    FLOAT = "floating point"
    TEXT = "string"
    ESCAPED_TEXT = "string, escaped"
    WIDE_TEXT = "wide string"
    SYMBOL = "symbol"
    USER_SYMBOL = "user symbol"
    STACK = "stack"
    TIME = "time"
    DATE = "date"
    PORT = "port"
    PERCENT = "percent sign"


_CUTTING: Final = (Shows.TEXT, Shows.ESCAPED_TEXT, Shows.WIDE_TEXT)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of conversion: its prototype, as messages show it, and the types that it takes."""

    name: str
    shows: Shows
    prototype: str
    takes: Callable[[DType], bool]


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion with the text before it. Width and precision are 0 where they are not given."""

    prefix: bytes
    kind: Kind
    marks: Mark = Mark.NONE
    width: int = 0
    precision: int = 0

    @property
    def columns(self) -> int:
        """The least number of characters that it prints. The precision counts too, except that of text, which is the
        most characters."""
        return self.width if self.kind.shows in _CUTTING else max(self.width, self.precision)


@dataclass(frozen=True, slots=True)
class Format:
    """A parsed format: conversions, and the text after the last."""

    text: bytes
    conversions: tuple[Conversion, ...]
    suffix: bytes


# -- which types a conversion takes -----------------------------------------------------------------------------------


def _takes_short_integer(kind: DType) -> bool:
    return is_integer(kind) and _bytes_of(kind) <= types.INT.size


def _takes_word(kind: DType) -> bool:
    return is_integer(kind) and _bytes_of(kind) == types.LONG.size


def _takes_address(kind: DType) -> bool:
    return is_integer(kind) or isinstance(bare(kind), Pointer)


def _takes_symbol(kind: DType) -> bool:
    return _takes_address(kind) or kind == types.SYMBOL


def _takes_stack(kind: DType) -> bool:
    return kind == types.STACK


def _takes_text(kind: DType) -> bool:
    plain = bare(kind)
    return is_string(kind) or (isinstance(plain, Array) and is_character(plain.element))


def _takes_wide_text(kind: DType) -> bool:
    plain = bare(kind)
    return isinstance(plain, Array) and is_integer(plain.element) and _bytes_of(plain.element) == types.INT.size


def _takes_nothing(_kind: DType) -> bool:
    return True


def _exactly(size: int, *, is_signed: bool) -> Callable[[DType], bool]:
    """A test for integers of this size (bytes) and sign. An enumeration fits every integer type."""

    def takes(kind: DType) -> bool:
        match bare(kind):
            case EnumType():
                return True
            case Integer(kind=IntegerKind.PLAIN) as integer:
                return integer.size == size and integer.is_signed is is_signed
            case _:
                return False

    return takes


def _takes_long_double(kind: DType) -> bool:
    plain = bare(kind)
    return isinstance(plain, Float) and plain.name == "long double"


def _bytes_of(kind: DType) -> int:
    plain = bare(kind)
    return 0 if isinstance(plain, types.String | types.Dynamic) else size_of(plain) or 0


def _kinds() -> dict[str, Kind]:
    integer, text = "integer of any size", "string or char [] (stringof makes one of a char *)"
    table = [
        Kind("a", Shows.SYMBOL, "pointer or integer", _takes_symbol),
        Kind("A", Shows.USER_SYMBOL, "pointer or integer", _takes_symbol),
        Kind("c", Shows.CHARACTER, "char, short or int", _takes_short_integer),
        Kind("C", Shows.ESCAPED_CHARACTER, "char, short or int", _takes_short_integer),
        Kind("d", Shows.DECIMAL, integer, is_integer),
        Kind("i", Shows.SIGNED, integer, is_integer),
        Kind("I", Shows.TEXT, text, _takes_text),
        Kind("k", Shows.STACK, "stack", _takes_stack),
        Kind("o", Shows.OCTAL, integer, is_integer),
        Kind("p", Shows.HEX, "pointer or integer", _takes_address),
        Kind("P", Shows.PORT, "uint16_t", _exactly(2, is_signed=False)),
        Kind("s", Shows.TEXT, text, _takes_text),
        Kind("S", Shows.ESCAPED_TEXT, text, _takes_text),
        Kind("T", Shows.DATE, "int64_t", _takes_word),
        Kind("u", Shows.UNSIGNED, integer, is_integer),
        Kind("x", Shows.HEX, integer, is_integer),
        Kind("X", Shows.HEX, integer, is_integer),
        Kind("Y", Shows.TIME, "int64_t", _takes_word),
        Kind("%", Shows.PERCENT, "void", _takes_nothing),
        *(Kind(prefix + "c", Shows.WIDE_CHARACTER, "int", _exactly(4, is_signed=True)) for prefix in "lw"),
        *(Kind(prefix + "s", Shows.WIDE_TEXT, "wchar_t []", _takes_wide_text) for prefix in "lw"),
        *(Kind(letter, Shows.FLOAT, "float, double or long double", is_float) for letter in "eEfgG"),
        *(Kind("L" + letter, Shows.FLOAT, "long double", _takes_long_double) for letter in "eEfgG"),
        *_sized("h", types.SHORT),
        *_sized("l", types.LONG),
        *_sized("ll", types.LONGLONG),
    ]
    return {kind.name: kind for kind in table}


def _sized(prefix: str, kind: Integer) -> list[Kind]:
    signed, unsigned = _exactly(kind.size, is_signed=True), _exactly(kind.size, is_signed=False)
    shown = {"o": Shows.OCTAL, "u": Shows.UNSIGNED, "x": Shows.HEX, "X": Shows.HEX}
    return [
        *(Kind(prefix + letter, Shows.SIGNED, kind.name, signed) for letter in "di"),
        *(Kind(prefix + letter, shows, f"unsigned {kind.name}", unsigned) for letter, shows in shown.items()),
    ]


KINDS: Final = _kinds()

# -- parsing ----------------------------------------------------------------------------------------------------------


def parse(text: bytes, span: Span | None = None) -> Format:
    """The conversions of a format string. Raises DError: D_SYNTAX."""
    text = text.partition(b"\0")[0]  # C stops at the first NUL
    conversions: list[Conversion] = []
    start, columns = 0, 0
    while (percent := text.find(b"%", start)) >= 0:
        reader = _Reader(text, percent, Conversion(text[start:percent], KINDS["%"]), len(conversions) + 1, span)
        conversions.append(reader.read())
        start = reader.position + 1
        columns += conversions[-1].columns
        if columns > MOST_COLUMNS:
            raise reader.error(f"makes the output wider than {MOST_COLUMNS} columns")
    return Format(text, tuple(conversions), text[start:])


_SIMPLE_MARKS: Final = {
    "#": Mark.ALTERNATE,
    "+": Mark.PLUS,
    " ": Mark.SPACE,
    "'": Mark.GROUPS,
    "@": Mark.AGGREGATION,
}


@dataclass(slots=True)
class _Reader:
    """Reads one directive, from its percent sign to its name. Flags, digits and the dot may come in any order, as in
    libdtrace's dt_printf_create()."""

    text: bytes
    position: int  # when done: that of the name's last character
    conversion: Conversion
    number: int
    span: Span | None
    name: str = ""
    has_dot: bool = False
    has_digits: bool = False

    def read(self) -> Conversion:
        while True:
            self.position += 1
            character = chr(self.text[self.position]) if self.position < len(self.text) else ""
            if character and character in "hlLw":
                self.name = (self.name + character)[:_LONGEST_PREFIX]
            elif not self._qualifies(character):
                return replace(self.conversion, kind=self._kind(character))

    def _qualifies(self, character: str) -> bool:
        """Whether this character comes before the conversion's name; if so, it is applied."""
        match character:
            case "#" | "+" | " " | "'" | "@":
                self._mark(_SIMPLE_MARKS[character])
            case "-":
                self._mark(Mark.LEFT, without=Mark.ZEROS)
            case "*":
                self._star()
            case ".":
                self._dot()
            case "?":
                self.conversion = replace(self.conversion, width=POINTER_COLUMNS)
            case _ if character and character in "0123456789":
                self._digits(character)
            case _:
                return False
        return True

    def _mark(self, mark: Mark, *, without: Mark = Mark.NONE) -> None:
        self.conversion = replace(self.conversion, marks=self.conversion.marks & ~without | mark)

    def _star(self) -> None:
        mark = Mark.ANY_PRECISION if self.has_dot else Mark.ANY_WIDTH
        if mark in self.conversion.marks:
            what = "precision" if self.has_dot else "width"
            raise self.error(f"has more than one '*' for its {what}")
        self._mark(mark)

    def _dot(self) -> None:
        if self.has_dot:
            raise self.error("has more than one '.'")
        self.has_dot, self.has_digits = True, False

    def _digits(self, first: str) -> None:
        if first == "0" and not self.has_dot and not self.has_digits:
            self._mark(Mark.ZEROS, without=Mark.LEFT)
            return
        end = self.position
        while end < len(self.text) and self.text[end] in b"0123456789":
            end += 1
        digits = self.text[self.position : end].lstrip(b"0")
        number = min(int(digits[:_LONGEST_NUMBER] or b"0"), _LARGEST)
        self.position, self.has_digits = end - 1, True
        if self.has_dot:
            self.conversion = replace(self.conversion, precision=number)
        else:
            self.conversion = replace(self.conversion, width=number)

    def _kind(self, character: str) -> Kind:
        if not character:
            raise self.error("has no name: the format string ends before it")
        if character == "$":
            raise self.error("is positional (%n$), which is not supported")
        if character == "%" and self.text[self.position - 1] != ord("%"):
            raise self.error("is %%, which takes no flags, width or precision")
        kind = KINDS.get(self.name + character)
        if kind is None:
            raise self.error(f"is undefined: %{self.name}{character}")
        return kind

    def error(self, what: str) -> DError:
        """The error for this directive."""
        return DError("D_SYNTAX", f"format conversion #{self.number} {what}", self.span)


# -- checking ---------------------------------------------------------------------------------------------------------


def check_printf(template: Format, arguments: Sequence[DType], *, function: str, span: Span | None = None) -> None:
    """Refuse arguments unless they are exactly those that the format string takes. Raises DError: D_PRINTF_FMT_EMPTY,
    D_PRINTF_ARG_*, D_PRINTF_DYN_*, D_PRINTF_AGG_CONV."""
    taken = _check(template, arguments, function, span, value=None)
    if taken < len(arguments):
        raise DError(
            "D_PRINTF_ARG_EXTRA",
            f"{function}( ) prototype mismatch: only {taken} arguments required by this format string",
            span,
        )


def check_printa(template: Format, keys: Sequence[DType], *, is_count: bool, span: Span | None = None) -> None:
    """Refuse an aggregation unless its keys, from the first on, fit the plain conversions, and its value those with
    `@`. The last keys may be unused. Raises DError as `check_printf` does."""
    _check(template, keys, "printa", span, value=types.UINT64 if is_count else types.INT64)


def _check(
    template: Format, arguments: Sequence[DType], function: str, span: Span | None, *, value: DType | None
) -> int:
    """The number of arguments that the conversions take. Raises DError for one that does not fit."""
    if not template.text:
        raise DError("D_PRINTF_FMT_EMPTY", f"{function}( ) format string is empty", span)
    taking = _Arguments(arguments, function, span)
    for number, conversion in enumerate(template.conversions, 1):
        if conversion.kind.shows is Shows.PERCENT:
            continue
        taking.columns(conversion, number)
        if Mark.AGGREGATION not in conversion.marks:
            taking.value(conversion, number)
        elif value is None:
            raise DError(
                "D_PRINTF_AGG_CONV", f"%@ conversion needs an aggregation: not for use with {function}( )", span
            )
        else:
            taking.fit(conversion, number, value, "aggregating action")
    return taking.taken


@dataclass(slots=True)
class _Arguments:
    """Compares the arguments, one after another, with the conversions."""

    arguments: Sequence[DType]
    function: str
    span: Span | None
    taken: int = 0

    def columns(self, conversion: Conversion, number: int) -> None:
        """Take an integer for `*` and another for `.*`. `number` is the conversion's, for messages."""
        for mark, spelled in ((Mark.ANY_WIDTH, "*"), (Mark.ANY_PRECISION, ".*")):
            if mark not in conversion.marks:
                continue
            if self.taken >= len(self.arguments):
                raise self._missing("D_PRINTF_DYN_PROTO", conversion, number, f'"{spelled}" argument')
            if not is_integer(self.arguments[self.taken]):
                raise self._misfit(
                    "D_PRINTF_DYN_TYPE",
                    f"argument #{self.taken + 2} is incompatible with conversion #{number} prototype",
                    (f"% {spelled} {conversion.kind.name}", "int", describe(self.arguments[self.taken])),
                )
            self.taken += 1

    def value(self, conversion: Conversion, number: int) -> None:
        """Take the next argument as the conversion's value."""
        if self.taken >= len(self.arguments):
            raise self._missing("D_PRINTF_ARG_PROTO", conversion, number, "value argument")
        self.taken += 1
        self.fit(conversion, number, self.arguments[self.taken - 1], f"argument #{self.taken + 1}")

    def fit(self, conversion: Conversion, number: int, kind: DType, what: str) -> None:
        """Refuse a value of a type that the conversion does not take. `what` names it in messages."""
        if not conversion.kind.takes(kind):
            raise self._misfit(
                "D_PRINTF_ARG_TYPE",
                f"{what} is incompatible with conversion #{number} prototype",
                (f"%{conversion.kind.name}", conversion.kind.prototype, describe(kind)),
            )

    def _missing(self, tag: str, conversion: Conversion, number: int, what: str) -> DError:
        where = f"conversion #{number} (%{conversion.kind.name})"
        return DError(
            tag, f"{self.function}( ) prototype mismatch: {where} is missing a corresponding {what}", self.span
        )

    def _misfit(self, tag: str, what: str, lines: tuple[str, str, str]) -> DError:
        conversion, prototype, argument = lines
        detail = f"\tconversion: {conversion}\n\t prototype: {prototype}\n\t  argument: {argument}"
        return DError(tag, f"{self.function}( ) {what}:\n{detail}", self.span)
