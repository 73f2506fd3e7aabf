"""Constants are computed while a program is read, in 64 bits as libdtrace does: only signs follow the type."""

import operator
from collections.abc import Callable
from typing import Final

from kinst.runtime.dlang.conversions import arithmetic_type, is_signed, wrap_bits
from kinst.runtime.dlang.converting import register_size
from kinst.runtime.dlang.operands import WORD_MASK, Operand, constant_operand, ranged
from kinst.runtime.dlang.types import INT, DType

_SHIFT_MASK: Final = 63  # what the machines' shift instructions look at
_BITS: Final[dict[str, Callable[[int, int], int]]] = {
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def fold_unary(symbol: str, operand: Operand) -> Operand:
    """+ - ~ ! of a constant, whose type stays."""
    value = operand.constant or 0
    match symbol:
        case "-":
            value = -value
            if not is_signed(operand.type):
                value &= WORD_MASK >> (64 - 8 * register_size(operand.type))
        case "~":
            value = ~value
        case "!":
            value = int(value == 0)
    return constant_operand(operand.type, value)


def fold_binary(symbol: str, left: Operand, right: Operand) -> Operand | None:
    """Two constants with an operator between them; None for the comma. Zero divisors were refused."""
    first, second = left.constant or 0, right.constant or 0
    kind = arithmetic_type(left.type, right.type)
    if symbol in _BITS:
        return constant_operand(kind, _BITS[symbol](first, second))
    if symbol in _COMPARISONS:
        return constant_operand(INT, int(_COMPARISONS[symbol](ranged(first, kind), ranged(second, kind))))
    match symbol:
        case "&&" | "||" | "^^":
            return constant_operand(INT, _logical(symbol, bool(first), bool(second)))
        case "<<":
            return constant_operand(left.type, first << (second & _SHIFT_MASK))
        case ">>":
            return constant_operand(left.type, (first & WORD_MASK) >> (second & _SHIFT_MASK))
        case "/" | "%":
            return constant_operand(kind, _divided(symbol, ranged(first, kind), ranged(second, kind)))
        case _:
            return None


def _logical(symbol: str, first: bool, second: bool) -> int:  # noqa: FBT001 - the operands themselves
    return int(first and second if symbol == "&&" else first or second if symbol == "||" else first != second)


def _divided(symbol: str, first: int, second: int) -> int:
    """C's division: toward zero, and the remainder has the dividend's sign."""
    quotient = abs(first) // abs(second)
    if (first < 0) != (second < 0):
        quotient = -quotient
    return quotient if symbol == "/" else first - quotient * second


def fold_cast(kind: DType, operand: Operand) -> Operand:
    """A constant cast to an integer type: it is cut to the smaller of both sizes where the size shrinks or the sign
    changes, so that (uint64_t)-1 is 4294967295."""
    value = operand.constant or 0
    size, old_size = register_size(kind), register_size(operand.type)
    if size < old_size or is_signed(kind) != is_signed(operand.type):
        value = wrap_bits(value, 8 * min(size, old_size), is_signed=is_signed(kind))
    return constant_operand(kind, value)
