"""Typed values as gdb's print shows them, with `set print null-stop on`: a text ends at its first NUL."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol, Self

from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.typed.errors import MemoryFaultError
from kinst.runtime.typed.floats import is_complex
from kinst.runtime.typed.scalars import floating_bits, part_name
from kinst.runtime.typed.view import is_text
from kinst.targets.c_types import (
    Aggregate,
    Array,
    CType,
    EnumType,
    Float,
    Function,
    Integer,
    IntegerKind,
    Pointer,
    Qualified,
    Void,
    strip,
)

if TYPE_CHECKING:
    from kinst.runtime.typed.scalars import Bits, Place
    from kinst.runtime.typed.view import View

_DEEPEST: Final = 20  # structs in structs; below them "{...}", as gdb's max-depth
_SCANNED: Final = 1 << 20  # bytes of an array that are searched for equal elements
_REPEATED: Final = 10  # equal elements that are shown once, with their number
_ESCAPES: Final = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
_SHOWN: Final = range(32, 127)


class Shown(Protocol):
    """What is asked of a typed value."""

    _kind_: CType
    _place_: "Place"
    _view_: "View"

    @property
    def address_(self) -> int | None:
        """Its address."""

    def bytes_(self) -> bytes:
        """Its bytes."""
        ...

    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __getitem__(self, index: int, /) -> Self: ...
    def _part_(self, kind: CType, offset: int, step: str, bits: "Bits | None" = None) -> Self: ...


def formatted(value: "Shown", elements: int) -> str:
    """A value, with its type before it where that is a pointer's, as gdb does."""
    kind = strip(value._kind_)
    text = _Formatter(elements).text(value, 0)
    if isinstance(kind, Pointer) and not _is_plain_text(value._kind_):
        return f"({describe(value._kind_)}) {text}"
    return text


def _is_plain_text(kind: CType) -> bool:
    """Whether it is char *, which needs no name before it."""
    target = kind.target if isinstance(kind, Pointer) else None
    while isinstance(target, Qualified):
        target = target.target
    return isinstance(target, Integer) and target.name == "char"


class _Formatter:
    """Shows one value."""

    def __init__(self, elements: int) -> None:
        self._elements = elements

    def text(self, value: "Shown", depth: int) -> str:
        """A value inside another, or alone."""
        match strip(value._view_.complete(value._kind_)):
            case Aggregate() as kind:
                return self._aggregate(value, kind, depth)
            case Array() as kind:
                return self._array(value, kind, depth)
            case Pointer(target=target):
                return self._pointer(value, target)
            case Function():
                return f"{{{describe(value._kind_)}}} {self._address(value, value._place_.address or 0)}"
            case Void():
                return "void" if value.address_ is None else f"<a value of unknown type at {value.address_:#x}>"
            case kind:
                return _scalar(value, kind)

    def _aggregate(self, value: "Shown", kind: Aggregate, depth: int) -> str:
        if kind.members is None:
            return "<incomplete type>"
        if depth >= _DEEPEST:
            return "{...}"
        if not kind.members:
            return "{<No data fields>}"
        return f"{{{', '.join(self._members(value, kind, depth))}}}"

    def _members(self, value: "Shown", kind: Aggregate, depth: int) -> Iterator[str]:
        for member in kind.members or ():
            bits = None if member.bit_size is None else (member.bit_offset, member.bit_size)
            part = value._part_(member.type, member.offset, f".{member.name}", bits)
            text = self.text(part, depth + 1)
            yield f"{member.name} = {text}" if member.name else text

    def _array(self, value: "Shown", kind: Array, depth: int) -> str:
        size = value._view_.size_of(kind.element)
        if not kind.length or not size:
            return self._flexible(value, kind)
        known = min(kind.length, max(self._elements + 1, _SCANNED // size))
        data = value._part_(Array(kind.element, known), 0, "").bytes_()
        if is_text(kind.element):
            text = data.partition(b"\0")[0]
            return _quoted(text[: self._elements], is_cut=len(text) > self._elements)
        texts, at, count = list[str](), 0, 0
        for _, run in groupby(data[start : start + size] for start in range(0, len(data), size)):
            length, left = sum(1 for _ in run), self._elements - count
            if left <= 0:
                break
            texts += self._run(value, at, length, left, depth)
            at += length if length > _REPEATED else min(length, left)
            count += _REPEATED if length > _REPEATED else length
        return f"{{{', '.join(texts)}{'...' if at < kind.length else ''}}}"

    def _run(self, value: "Shown", at: int, length: int, most: int, depth: int) -> list[str]:
        """Equal elements beside each other, the first of which is number `at`."""
        if length > _REPEATED:
            return [f"{self.text(value[at], depth + 1)} <repeats {length} times>"]
        return [self.text(value[number], depth + 1) for number in range(at, at + min(length, most))]

    def _flexible(self, value: "Shown", kind: Array) -> str:
        """An array of no known length: where it begins, as gdb shows it."""
        if value.address_ is None:
            return "{}"
        return self._target(value, kind.element, value.address_)

    def _pointer(self, value: "Shown", target: CType) -> str:
        return self._target(value, target, int(value))

    def _target(self, value: "Shown", target: CType, address: int) -> str:
        """An address, with its symbol; the text that is there, if it points to characters."""
        found = self._address(value, address)
        if not is_text(target) or not address:
            return found
        try:
            data = value._view_.string(address, self._elements + 1, value._place_.path)
        except MemoryFaultError as error:
            return f"{found} <error: Cannot access memory at address {error.address:#x}>"
        return f"{found} {_quoted(data[: self._elements], is_cut=len(data) > self._elements)}"

    def _address(self, value: "Shown", address: int) -> str:
        symbol = value._view_.symbol(address) if address else None
        if symbol is None:
            return f"{address:#x}"
        name, offset = symbol
        return f"{address:#x} <{name}{f'+{offset}' if offset else ''}>"


def _scalar(value: "Shown", kind: CType) -> str:
    if isinstance(kind, Float):
        if not isinstance(value._place_.data, bytes):
            return f"{float(value):.17g}"
        return _float(value.bytes_(), kind, is_x87=value._view_.is_x87)
    number = int(value)
    match kind:
        case EnumType():
            return _enumerator(number, kind)
        case Integer(kind=IntegerKind.BOOLEAN) if number in (0, 1):
            return "true" if number else "false"
        case Integer(size=1, kind=text) if text is not IntegerKind.BOOLEAN:
            return f"{number} {_character(number % 256)}"
        case _:
            return str(number)


def _float(data: bytes, kind: Float, *, is_x87: bool) -> str:
    if not is_complex(kind):
        return floating_bits(data, kind, is_x87=is_x87).text()
    half, single = len(data) // 2, Float(part_name(kind), len(data) // 2)
    real, imaginary = (floating_bits(part, single, is_x87=is_x87).text() for part in (data[:half], data[half:]))
    return f"{real} + {imaginary}i"


def _enumerator(number: int, kind: EnumType) -> str:
    """The name of a value; of flags those that are set."""
    for name, value in kind.enumerators:
        if value == number:
            return name
    if not _are_flags(value for _, value in kind.enumerators):
        return str(number)
    names, left = [], number
    for name, value in kind.enumerators:
        if left & value:
            names.append(name)
            left &= ~value
    if left:
        names.append(f"unknown: {left:#x}")
    return f"({' | '.join(names)})" if names else "0"


def _are_flags(values: Iterable[int]) -> bool:
    """Whether each value but 0 has one bit, which is its own."""
    taken = 0
    for value in values:
        if value < 0 or value & value - 1 or value & taken:
            return False
        taken |= value
    return True


def _character(byte: int) -> str:
    return f"'{_escaped(byte, quote=39)}'"


def _escaped(byte: int, *, quote: int) -> str:
    """A character in quotes; one that cannot be shown as three octal digits."""
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    if byte == quote:
        return f"\\{chr(byte)}"
    return chr(byte) if byte in _SHOWN else f"\\{byte:03o}"


def _quoted(data: bytes, *, is_cut: bool) -> str:
    """A text in quotes; of a character that is repeated more than ten times the number of times."""
    parts, plain = [], bytearray()
    for byte, run in groupby(data):
        count = len(list(run))
        if count <= _REPEATED:
            plain += bytes([byte]) * count
            continue
        parts += [_literal(bytes(plain))] if plain else []
        plain.clear()
        parts.append(f"{_character(byte)} <repeats {count} times>")
    parts += [_literal(bytes(plain))] if plain or not parts else []
    return ", ".join(parts) + ("..." if is_cut else "")


def _literal(data: bytes) -> str:
    return f'"{"".join(_escaped(byte, quote=34) for byte in data)}"'
