"""Constant expressions are evaluated when a program is compiled, by C's rules.

Where the result is undefined in C (an int that overflows), or D does not follow C (narrow types are not promoted), the
result has all the 64 bits that it has in libdtrace: `10 * 1000000000` nanoseconds are ten seconds, though both
constants are ints.
"""

import operator
from collections.abc import Callable
from typing import Final

from kinst.runtime.dlang.check.converting import register_size
from kinst.runtime.dlang.check.operands import Operand, constant_operand, ranged
from kinst.runtime.dlang.types.conversions import arithmetic_type, is_signed, wrap
from kinst.runtime.dlang.types.types import INT, DType

_SHIFT_MASK: Final = 63  # the bits of the count that a 64-bit shift instruction uses
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
    """+ - ~ ! of a constant. Only the result of ! has a type of its own, int."""
    value = operand.constant or 0
    match symbol:
        case "-" if not is_signed(operand.type):
            return constant_operand(operand.type, wrap(-value, operand.type))
        case "-":
            return constant_operand(operand.type, -value)
        case "~":
            return _result(operand.type, ~value)
        case "!":
            return constant_operand(INT, int(value == 0))
        case _:
            return constant_operand(operand.type, value)


def fold_binary(symbol: str, left: Operand, right: Operand) -> Operand | None:
    """An operator applied to two constants; None for the comma. Zero divisors have been refused before."""
    first, second = left.constant or 0, right.constant or 0
    kind = arithmetic_type(left.type, right.type)
    if symbol in _BITS:
        return _result(kind, _BITS[symbol](first, second))
    if symbol in _COMPARISONS:
        return constant_operand(INT, int(_COMPARISONS[symbol](_as(kind, first), _as(kind, second))))
    match symbol:
        case "&&" | "||" | "^^":
            return constant_operand(INT, _logical(symbol, bool(first), bool(second)))
        case "<<":
            return _result(left.type, first << (second & _SHIFT_MASK))
        case ">>":
            return _result(left.type, _as(left.type, first) >> (second & _SHIFT_MASK))
        case "/" | "%":
            return _result(kind, _divided(symbol, _as(kind, first), _as(kind, second)))
        case _:
            return None


def _as(kind: DType, value: int) -> int:
    """An operand converted to the type of the operation. Unsigned types from int on wrap, as C defines it: -1 is the
    largest unsigned int. Any other value keeps its 64 bits."""
    wraps = not is_signed(kind) and register_size(kind) >= INT.size
    return wrap(value, kind) if wraps else ranged(value, kind)


def _result(kind: DType, value: int) -> Operand:
    return constant_operand(kind, _as(kind, value))


def _logical(symbol: str, first: bool, second: bool) -> int:  # noqa: FBT001 - the operands themselves
    return int(first and second if symbol == "&&" else first or second if symbol == "||" else first != second)


def _divided(symbol: str, first: int, second: int) -> int:
    """C's division: toward zero, and the remainder has the dividend's sign."""
    quotient = abs(first) // abs(second)
    if (first < 0) != (second < 0):
        quotient = -quotient
    return quotient if symbol == "/" else first - quotient * second


def fold_cast(kind: DType, operand: Operand) -> Operand:
    """A constant cast to an integer type: truncated to its own type first, then to the new one."""
    return constant_operand(kind, wrap(wrap(operand.constant or 0, operand.type), kind))
