"""The arguments of a call: their values, and as they are written.

1  -2  0x10  'c'                  a number: 64 bits of it are passed
"text\\0\\x7f"                     a text: its address is passed, and it gets a NUL
hex"00 ff"                        bytes: their address, without a NUL; behind them nothing is mapped
{u32 7, "name", {1}, hex"00"}     a structure: its address. Numbers are u8, u16, u32 or u64, as which they are
                                  aligned, and u64 if nothing is said; all else is a pointer to it
$1  $name                         in a template: what a row says
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

MOST_ARGUMENTS: Final = 64
_DEEPEST: Final = 16  # structures in structures
_SIZES: Final = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
_PLAIN: Final = frozenset(range(ord(" "), 0x7F)) - set(b'"\\')  # bytes of a text that are shown as they are
_SPACE: Final = re.compile(r"\s*")
_TOKEN: Final = re.compile(
    r"""hex"(?P<hex>[^"]*)"|"(?P<text>(?:[^"\\]|\\.)*)"|'(?P<char>[^'\\]|\\.)'|\$(?P<hole>\w+)|(?P<number>-?\w+)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes that are passed by address, without a NUL. Behind them nothing is mapped, so that who reads or writes
    beyond their end faults.

    Args:
        content: the bytes, at most 1 MiB.
        alignment: what divides their address, a power of two: an overrun of less may stay unseen.

    Example:
        >>> with open_image("samples/kernel-arm64.elf") as image:
        ...     image.sweep("hash_bytes").call(1, Buffer(b"four"), 5).what
        'read of 0x80040100000, where nothing is'
    """

    content: bytes
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class Structure:
    """Fields in memory: numbers with their size in bytes, and pointers, whose size is 8. Its address is passed."""

    fields: tuple[tuple[int, "Argument"], ...]


@dataclass(frozen=True, slots=True)
class Hole:
    """What a row says: `name` is that of a column, or its number from 1."""

    name: str


Argument = int | bytes | Buffer | Structure
Written = Argument | Hole
_Read = TypeVar("_Read")


def shown(argument: Written) -> str:
    """An argument as it is written."""
    match argument:
        case int():
            return str(int(argument))
        case bytes():
            return '"' + "".join(chr(one) if one in _PLAIN else f"\\x{one:02x}" for one in argument) + '"'
        case Buffer():
            return f'hex"{argument.content.hex()}"'
        case Structure():
            return "{" + ", ".join(_shown_field(size, one) for size, one in argument.fields) + "}"
        case Hole():
            return f"${argument.name}"


def _shown_field(size: int, argument: "Argument") -> str:
    return f"u{8 * size} {shown(argument)}" if isinstance(argument, int) and size < 8 else shown(argument)


def parse_arguments(text: str, what: str, hole: Callable[[str], Written] | None = None) -> tuple[Written, ...]:
    """Read arguments that are separated by commas.

    Args:
        text: the arguments.
        what: what an error message begins with.
        hole: gives what $name means; None: it means nothing here.

    Raises:
        UsageError: they are not written as they should be.
    """
    return tuple(_Reader(text, what, hole).all())


class _Reader:
    """A text, and how far it has been read."""

    def __init__(self, text: str, what: str, hole: Callable[[str], Written] | None) -> None:
        self._text, self._what, self._hole = text, what, hole
        self._at = self._depth = 0
        self._number = 1  # of the argument

    def all(self) -> Iterator[Written]:
        """The arguments, up to the end of the text."""
        self._skip()
        while self._at < len(self._text):
            if self._number > MOST_ARGUMENTS:
                raise UsageError(f"{self._what}: more than {MOST_ARGUMENTS} arguments")
            yield self._argument()
            if self._at < len(self._text):
                self._expect(",")
            self._number += 1

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None, "it matches no space, too"
        self._at = found.end()

    def _expect(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            raise self._wrong()
        self._at += len(mark)
        self._skip()

    def _wrong(self) -> UsageError:
        return UsageError(f"{self._what}: argument {self._number} is neither a number nor a text")

    def _argument(self) -> Written:
        if self._text.startswith("{", self._at):
            return self._structure()
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._wrong()
        self._at = found.end()
        self._skip()
        return self._value(found)

    def _value(self, found: re.Match[str]) -> Written:
        match found.lastgroup:
            case "hex":
                return Buffer(self._bytes(found["hex"]))
            case "text":
                return unescaped(found["text"], self._what)
            case "char":
                return unescaped(found["char"], self._what)[0]
            case "hole" if self._hole is not None:
                return self._hole(found["hole"])
            case "number":
                return self._integer(found["number"])
            case _:
                raise UsageError(f"{self._what}: {found[0]}: is for --call-each, whose rows say what it is")

    def _bytes(self, digits: str) -> bytes:
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise UsageError(f'{self._what}: hex"{digits[:40]}": is not pairs of hexadecimal digits') from None

    def _integer(self, digits: str) -> int:
        try:
            return int(digits, 0)
        except ValueError:
            raise UsageError(f"{self._what}: {digits[:40]} is neither a number nor a text in quotes") from None

    def _structure(self) -> Structure:
        self._expect("{")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UsageError(f"{self._what}: argument {self._number} has structures in structures more than {_DEEPEST}")
        fields = []
        while not self._text.startswith("}", self._at):
            fields.append(self._field())
            if not self._text.startswith("}", self._at):
                self._expect(",")
        self._depth -= 1
        self._expect("}")
        if not fields:
            raise UsageError(f"{self._what}: argument {self._number} is a structure without fields")
        return Structure(tuple(fields))

    def _field(self) -> tuple[int, Argument]:
        found = re.compile(r"(u8|u16|u32|u64)\s+").match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        value = self._argument()
        if isinstance(value, Hole) or (found is not None and not isinstance(value, int)):
            raise self._wrong()
        return (8 if found is None else _SIZES[found[1]]), value


def unescaped(text: str, what: str) -> bytes:
    """The bytes of a text in quotes. Raises UsageError: an escape is wrong."""
    if "\\" not in text:
        return text.encode(errors="surrogateescape")
    try:
        return text.encode(errors="surrogateescape").decode("unicode_escape").encode("latin-1")
    except UnicodeError as error:
        raise UsageError(f"{what}: {text!r}: {error}") from None
