"""Arithmetic of C (C11 6.3.1, 6.5) on numbers with types. Results are in the range of their type."""

import math
import operator
import struct
from collections.abc import Callable
from typing import Final

from kinst.runtime.dlang.types.conversions import wrap_bits
from kinst.runtime.dlang.types.types import INT, LONG, UINT, ULONG, ULONGLONG
from kinst.runtime.typed.errors import OperandError
from kinst.targets.c_types import CType, EnumType, Float, Integer, IntegerKind, strip

Number = int | float
DOUBLE: Final = Float("double", 8)
_FLOAT: Final = 4  # bytes of a float
_INT: Final = 4
_RANKS: Final = {"long long": 1, "unsigned long long": 1}  # above long, of the same size


def literal(value: Number) -> CType:
    """The type of a number that a Python program writes: as that of a constant in C, without a suffix."""
    if isinstance(value, float):
        return DOUBLE
    for kind in (INT, LONG, ULONG):
        if wrapped(value, kind) == value:
            return kind
    raise OperandError(f"{value}: does not fit into 64 bits")


def wrapped(value: Number, kind: CType) -> Number:
    """A number converted to a type: of 8 bytes or fewer, as C casts it."""
    match strip(kind):
        case Integer(kind=IntegerKind.BOOLEAN):
            return int(value != 0)
        case Integer(size=size, is_signed=signed) | EnumType(base=Integer(size=size, is_signed=signed)):
            return wrap_bits(_whole(value), 8 * size, is_signed=signed)
        case Float(size=size):
            return _narrowed(value) if size == _FLOAT else float(value)
        case _:
            return wrap_bits(_whole(value), 64, is_signed=False)


def _narrowed(value: Number) -> float:
    """The nearest float; beyond the largest one it is infinite."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _whole(value: Number) -> int:
    try:
        return int(value)
    except (ValueError, OverflowError):
        raise OperandError(f"{value}: cannot be an integer") from None


def promoted(kind: CType, bits: int | None = None) -> CType:
    """The type of a single operand; `bits` is the width of a bit-field. Raises OperandError: it is no number."""
    match strip(kind):
        case Float() as plain:
            return plain
        case EnumType(base=base) | (Integer() as base):
            width = bits or 8 * base.size
            if width < 8 * _INT or (width == 8 * _INT and base.is_signed):
                return INT
            return UINT if width == 8 * _INT else base
        case _:
            raise OperandError("a number is wanted there")


def usual(left: CType, right: CType) -> CType:
    """The type of both operands, each of which is promoted (the usual arithmetic conversions)."""
    floats = [one for one in (left, right) if isinstance(one, Float)]
    if floats:
        return max(floats, key=lambda one: one.size)
    assert isinstance(left, Integer)
    assert isinstance(right, Integer)
    if left.is_signed == right.is_signed:
        return max(left, right, key=_rank)
    unsigned, signed = (right, left) if left.is_signed else (left, right)
    if _rank(unsigned) >= _rank(signed):
        return unsigned
    if signed.size > unsigned.size:
        return signed
    return ULONGLONG if _RANKS.get(signed.name) else ULONG


def _rank(kind: Integer) -> tuple[int, int]:
    return kind.size, _RANKS.get(kind.name, 0)


def _quotient(left: Number, right: Number) -> Number:
    """Rounded toward zero, and exact where both are whole."""
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _remainder(left: int, right: int) -> int:
    """With the sign of the left operand."""
    found = abs(left) % abs(right)
    return -found if left < 0 else found


BOTH: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
}
WHOLE: Final[dict[str, Callable[[int, int], int]]] = {
    "%": _remainder,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
SHIFTS: Final[dict[str, Callable[[int, int], int]]] = {"<<": operator.lshift, ">>": operator.rshift}
Operand = tuple[CType, Number]  # its promoted type, and its value


def computed(sign: str, left: Operand, right: Operand) -> Operand:
    """left SIGN right, for two numbers. Raises OperandError: C does not define it."""
    if sign in SHIFTS:
        return _shifted(sign, left, right)
    kind = usual(left[0], right[0])
    one, other = wrapped(left[1], kind), wrapped(right[1], kind)
    if sign in "/%" and not other:
        raise OperandError(f"{one} {sign} {other}: division by zero")
    if sign in BOTH:
        return kind, wrapped(BOTH[sign](one, other), kind)
    if not isinstance(one, int) or not isinstance(other, int) or isinstance(kind, Float):
        raise OperandError(f"{sign}: is for integers")
    return kind, wrapped(WHOLE[sign](one, other), kind)


def _shifted(sign: str, left: Operand, right: Operand) -> Operand:
    (kind, value), count = left, right[1]
    if not isinstance(kind, Integer) or not isinstance(value, int) or not isinstance(count, int):
        raise OperandError(f"{sign}: is for integers")
    if not 0 <= count < 8 * kind.size:
        raise OperandError(f"{sign} {count}: {kind.name} has {8 * kind.size} bits")
    return kind, wrapped(SHIFTS[sign](value, count), kind)


def compared(left: Operand, right: Operand) -> tuple[Number, Number]:
    """Two numbers as C compares them: -1 is more than 1u."""
    kind = usual(left[0], right[0])
    return wrapped(left[1], kind), wrapped(right[1], kind)
