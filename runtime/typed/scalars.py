"""Where values are, and what numbers are in their bytes: integers, bit-fields, addresses, floating point."""

import struct

from kinst.runtime.dlang.types.conversions import wrap_bits
from kinst.runtime.typed.arithmetic import Number
from kinst.runtime.typed.errors import OperandError
from kinst.runtime.typed.floats import Number as Exact
from kinst.runtime.typed.floats import format_of, is_complex, number_of
from kinst.targets.c_types import CType, EnumType, Float, Integer, Pointer, size_of, strip
from kinst.targets.values import dataclass

_FLOATS = {4: struct.Struct("<f"), 8: struct.Struct("<d")}
Bits = tuple[int, int]  # of a bit-field: how far behind its bytes' least significant bit it is, and its width


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is: an address, or else the bytes or the number itself; and how the program came there."""

    path: str
    address: int | None = None
    data: bytes | Number = b""
    bits: Bits | None = None


def bytes_for(kind: CType, bits: Bits | None) -> tuple[int, int]:
    """The bytes that hold a scalar: how far behind its place they begin, and how many they are. Of a bit-field's unit
    only those that it is in: the rest of a packed struct's last one may be behind the end of memory."""
    if bits is None:
        return 0, size_of(kind) or 0
    first, width = bits
    return first // 8, (first + width + 7) // 8 - first // 8


def number(data: bytes, kind: CType, bits: Bits | None, *, is_x87: bool) -> int | float | complex:
    """The number in the bytes that `bytes_for` says. Raises OperandError: its format is not known."""
    plain = strip(kind)
    if isinstance(plain, Float):
        return floating(data, plain, is_x87=is_x87)
    whole = int.from_bytes(data, "little")
    base = plain.base if isinstance(plain, EnumType) else plain
    is_signed = isinstance(base, Integer) and base.is_signed
    if bits is not None:
        return wrap_bits(whole >> bits[0] % 8, bits[1], is_signed=is_signed)
    return wrap_bits(whole, 8 * len(data), is_signed=is_signed) if isinstance(base, Integer | Pointer) else whole


def floating(data: bytes, kind: Float, *, is_x87: bool) -> float | complex:
    """Of a long double the nearest of Python's numbers. Raises OperandError: its format is not known."""
    if is_complex(kind):
        half, single = len(data) // 2, Float(part_name(kind), len(data) // 2)
        parts = [floating(part, single, is_x87=is_x87) for part in (data[:half], data[half:])]
        return complex(parts[0].real, parts[1].real)
    known = _FLOATS.get(len(data)) if "ecimal" not in kind.name else None
    return float(known.unpack(data)[0]) if known is not None else floating_bits(data, kind, is_x87=is_x87).value()


def floating_bits(data: bytes, kind: Float, *, is_x87: bool) -> Exact:
    """A number with all of its bits. Raises OperandError: its format is not known."""
    form = format_of(kind, is_x87=is_x87)
    if form is None:
        raise OperandError(f"{kind.name}: numbers of this format are not known: bytes_() has its bytes")
    return number_of(data, form)


def part_name(kind: Float) -> str:
    """The type of both parts of a complex number."""
    words = (word for word in kind.name.split() if word not in ("complex", "_Complex"))
    return " ".join(words) or "double"
