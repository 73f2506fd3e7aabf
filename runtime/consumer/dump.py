"""print(): a value's bytes and its C type -> text as libdtrace's dt_print.c writes it, in the style of mdb's ::print.

Its oddities are kept, since scripts parse it: a struct has no newline after its last brace, characters above 0x7f are
sign-extended octal numbers, and zero is "0" where other numbers have 0x.
"""

import math
import struct
from typing import Final

from kinst.runtime.clauses.environment import Symbols, Value
from kinst.runtime.dlang.record_layout import PRINTED
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import CHAR, DType, Dynamic, String, bare
from kinst.targets.c_types import (
    Aggregate,
    Array,
    CType,
    EnumType,
    Float,
    Function,
    Integer,
    IntegerKind,
    Member,
    Pointer,
    size_of,
    strip,
)
from kinst.targets.values import dataclass

_STEP: Final = 4  # columns that members are indented
_DEEPEST: Final = 64  # levels: deeper types end in an ellipsis


def dump(value: Value, kind: DType, symbols: Symbols, string_size: int) -> bytes:
    """The type, the value and a newline; for a struct all its members, without a newline after the last brace.

    Args:
        value: an integer, or the bytes of anything else.
        kind: its type.
        symbols: names the functions that pointers point to.
        string_size: the option strsize; a string is an array of that size.
    """
    plain = bare(kind)
    printer = _Printer(symbols)
    if isinstance(plain, Dynamic):
        raise TypeError("print() of a value without a type")
    if isinstance(plain, String):
        assert isinstance(value, bytes)
        as_array: CType = Array(CHAR, string_size)
        text = printer.value(as_array, value.ljust(string_size, b"\0"), _Nesting(0, 0))
        return f"{describe(kind)} {text}\n".encode("utf-8", "surrogateescape")
    data = value if isinstance(value, bytes) else _bytes_of(value, size_of(plain) or 8)
    assert not isinstance(kind, String | Dynamic)
    text = f"{_type_name(kind)} {printer.value(plain, data, _Nesting(0, 0))}"
    ends_with_brace = isinstance(plain, Aggregate) and bool(plain.members)
    return (text if ends_with_brace else text + "\n").encode("utf-8", "surrogateescape")


def _bytes_of(value: Value, size: int) -> bytes:
    assert isinstance(value, int)
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _type_name(kind: CType) -> str:
    """The type's name. libdtrace shows a struct without a tag as "struct " with an empty name, and functions without
    parameters."""
    if isinstance(kind, Aggregate) and not kind.tag:
        return f"{kind.kind.value} "
    return describe(kind, has_parameters=False)


@dataclass(frozen=True, slots=True)
class _Nesting:
    """How deep a value is nested: in structs, and in arrays of structs. dt_print.c counts both and adds them for the
    indentation, but the first alone decides how a char array looks."""

    depth: int
    nest: int

    @property
    def indent(self) -> str:
        return " " * _STEP * (self.depth + self.nest)

    @property
    def inside(self) -> "_Nesting":
        return _Nesting(self.depth + 1, self.nest)

    @property
    def element(self) -> "_Nesting":
        return _Nesting(0, self.nest + self.depth + 1)


@dataclass(slots=True)
class _Printer:
    symbols: Symbols
    left: int = PRINTED  # values that may still be printed: a larger struct ends in an ellipsis

    def value(self, kind: CType, data: bytes, place: _Nesting) -> str:
        """The value without its type. Members of a struct have their own lines."""
        self.left -= 1
        match strip(kind):
            case Integer() as integer:
                return _integer(integer, data)
            case Float(size=size):
                return _floating(data, size)
            case Pointer(target=target):
                return self._pointer(target, data)
            case EnumType() as enumeration:
                return _enumerator(enumeration, data)
            case Array() as array:
                return self._array(array, data, place)
            case Aggregate() as aggregate:
                return self._members(aggregate, data, place)
            case _:
                return _hex(data)

    def _members(self, aggregate: Aggregate, data: bytes, place: _Nesting) -> str:
        if aggregate.members is None:
            return "<forward decl>"
        if place.depth + place.nest > _DEEPEST:
            return "{ ... }"
        lines: list[str] = []
        for member in aggregate.members:
            if self.left <= 0:
                lines.append(f"{place.inside.indent}...\n")
                break
            lines.append(self._member(member, data, place.inside))
        if not lines:
            return "{"
        return "{\n" + "".join(lines) + place.indent + "}"

    def _member(self, member: Member, data: bytes, place: _Nesting) -> str:
        name = _type_name(member.type)
        declared = name if not member.name or name[-1] in "* " else name + " "
        if member.name:
            declared += f"{member.name}{_bits(member)} ="
        if member.bit_size is None:
            size = size_of(member.type) or 0
            text = self.value(member.type, data[member.offset : member.offset + size], place)
        else:
            unit = int.from_bytes(data[member.offset : member.offset + (size_of(member.type) or 8)], "little")
            text = f"{unit >> member.bit_offset & (1 << member.bit_size) - 1:#x}".replace("0x0", "0", 1)
        return f"{place.indent}{declared} {text}\n"

    def _array(self, array: Array, data: bytes, place: _Nesting) -> str:
        element = strip(array.element)
        size = size_of(element) or 0
        if _is_character(element):
            text = _text(data[: array.length or 0])
            if text is not None:
                return f'"{text}"' if place.depth == 0 else f'[ "{text}" ]'
        elements = []
        for start in range(0, (array.length or 0) * size, size or 1):
            if self.left <= 0:
                elements.append("...")
                break
            elements.append(self.value(element, data[start : start + size], place.element))
        if not isinstance(element, Aggregate):
            return f"[ {', '.join(elements)} ]"
        lines = [f"\n{place.element.indent}{_type_name(array.element)} {one}" for one in elements]
        return f"[ {', '.join(lines)}\n{place.indent}]"

    def _pointer(self, target: CType, data: bytes) -> str:
        address = int.from_bytes(data, "little")
        if address and isinstance(strip(target), Function):
            return self.symbols.describe(address, "sym")
        return _hex(data)


def _bits(member: Member) -> str:
    """The width after a bit-field's name; empty for one that fills its integer type exactly."""
    size = size_of(member.type) or 0
    if member.bit_size is None or not isinstance(strip(member.type), Integer):
        return ""
    return "" if member.bit_size == 8 * size and member.bit_offset == 0 else f" :{member.bit_size}"


def _is_character(kind: CType) -> bool:
    return isinstance(kind, Integer) and kind.kind is IntegerKind.CHARACTER and kind.is_signed and kind.size == 1


def _integer(kind: Integer, data: bytes) -> str:
    if not _is_character(kind) or not data:
        return _hex(data)
    byte = data[0]
    if 0x20 <= byte <= 0x7E:
        return f"'{chr(byte)}'"
    if byte == 0:
        return r"'\0'"
    # libdtrace passes a signed char to printf's %03o: it is promoted to int with its sign.
    return rf"'\{byte if byte < 0x80 else byte | 0xFFFFFF00:03o}'"


def _hex(data: bytes) -> str:
    """A number as C's %#x shows it: zero has no prefix."""
    number = int.from_bytes(data, "little")
    return f"{number:#x}" if number else "0"


def _text(data: bytes) -> str | None:
    """The text of a char array that holds printable characters and a NUL; None for any other."""
    text, nul, _ = data.partition(b"\0")
    return text.decode("ascii") if nul and all(0x20 <= byte <= 0x7E for byte in text) else None


def _enumerator(kind: EnumType, data: bytes) -> str:
    number = int.from_bytes(data, "little", signed=len(data) >= 4)
    for name, value in kind.enumerators:
        if value == number:
            return name
    return str(number)


def _floating(data: bytes, size: int) -> str:
    if size == 4:
        return f"{struct.unpack('<f', data)[0]:+.7e}"
    if size == 8:
        return f"{struct.unpack('<d', data)[0]:+.7e}"
    if size == 16:
        return f"{_extended(data):+.16E}"
    return "<unknown encoding>"


def _extended(data: bytes) -> float:
    """A number in x87's 80-bit format, as the nearest double."""
    mantissa, exponent = struct.unpack("<QH", data[:10])
    sign = -1.0 if exponent & 0x8000 else 1.0
    try:
        return math.ldexp(sign * mantissa, (exponent & 0x7FFF) - 16383 - 63)
    except OverflowError:
        return math.copysign(math.inf, sign)
