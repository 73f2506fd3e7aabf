"""Arithmetic of location expressions (DWARF 5, 2.5.1.4): on words without a type, and on integers of a base type."""

from collections.abc import Callable
from typing import Final, NamedTuple

from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.unwinding.location_operations import OPTIMISED_OUT
from kinst.targets.debuginfo.dwarf.unit_terms import BaseType

_MASK: Final = (1 << 64) - 1
_COMPARISONS: Final = range(0x29, 0x2F)  # DW_OP_eq, ge, gt, le, lt, ne
_SHIFTS: Final = range(0x24, 0x27)  # DW_OP_shl, shr, shra


class Typed(NamedTuple):
    """An integer of a base type, within its range. Words of DWARF's own type are plain unsigned numbers."""

    value: int
    kind: BaseType


Value = int | Typed


def binary(code: int, first: Value, second: Value) -> Value:
    """The result of an operation on two values. Raises Fault."""
    if isinstance(first, int) and isinstance(second, int):
        return _BINARY[code](first, second) & _MASK
    if code in _SHIFTS and isinstance(first, Typed):
        return _shifted(code, first, plain(second))
    if not (isinstance(first, Typed) and isinstance(second, Typed)) or first.kind.size != second.kind.size:
        raise Fault(FaultKind.ILLOP, 0, "a location expression that mixes types")
    if code in _COMPARISONS:
        return int(_COMPARED[code](first.value, second.value))
    return wrapped(_TYPED.get(code, _BINARY[code])(first.value, second.value), first.kind)


def unary(code: int, value: Value) -> Value:
    """The result of an operation on one value."""
    if isinstance(value, int):
        return _UNARY[code](_signed(value)) & _MASK
    return wrapped(_UNARY[code](value.value), value.kind)


def wrapped(value: int, kind: BaseType | None) -> Value:
    """A number as a value of a type, made from its low bits."""
    if kind is None:
        return value & _MASK
    bits = 8 * kind.size
    value &= (1 << bits) - 1
    return Typed(value - (1 << bits) if kind.is_signed and value >> bits - 1 else value, kind)


def reinterpreted(value: Value, kind: BaseType | None) -> Value:
    """The same bits as another type of the same size. Raises Fault if the sizes differ."""
    if (8 if isinstance(value, int) else value.kind.size) != (8 if kind is None else kind.size):
        raise Fault(FaultKind.ILLOP, 0, "a location expression that takes a value for one of another size")
    return wrapped(plain(value), kind)


def plain(value: Value) -> int:
    """The number itself."""
    return value if isinstance(value, int) else value.value


def _shifted(code: int, first: Typed, count: int) -> Value:
    """A shift. The count may have another type. DW_OP_shr takes the number as unsigned, DW_OP_shra as signed."""
    bits = 8 * first.kind.size
    count = _count(count, bits)
    number = first.value & (1 << bits) - 1
    if code == 0x26 and number >> bits - 1:
        number -= 1 << bits
    return wrapped(number << count if code == 0x24 else number >> count, first.kind)


def _count(count: int, bits: int) -> int:
    """A valid shift count. GCC for arm64 has been seen to shift left by a negative count where it means right; gdb
    shows 0 for that. Raises Fault."""
    if not 0 <= count < bits:
        raise Fault(FaultKind.ILLOP, 0, f"{OPTIMISED_OUT}: its location shifts by more bits than there are")
    return count


def _signed(value: int) -> int:
    return value - (value >> 63 << 64)


def _divided(first: int, second: int) -> int:
    return _quotient(_signed(first), _signed(second))


def _quotient(first: int, second: int) -> int:
    if not second:
        raise Fault(FaultKind.DIVZERO)
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


def _remainder(first: int, second: int) -> int:
    """DW_OP_mod. As in gdb and gcc, words are unsigned; with signed numbers the result has the sign of the first."""
    return first - second * _quotient(first, second)


_COMPARED: Final[dict[int, Callable[[int, int], bool]]] = {
    0x29: lambda first, second: first == second,
    0x2A: lambda first, second: first >= second,
    0x2B: lambda first, second: first > second,
    0x2C: lambda first, second: first <= second,
    0x2D: lambda first, second: first < second,
    0x2E: lambda first, second: first != second,
}
BINARY: Final = frozenset({0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x21, 0x22, *_SHIFTS, 0x27, *_COMPARISONS})
UNARY: Final = frozenset({0x19, 0x1F, 0x20})


def _compared(code: int) -> Callable[[int, int], int]:
    compare = _COMPARED[code]
    return lambda first, second: int(compare(_signed(first), _signed(second)))


_BINARY: Final[dict[int, Callable[[int, int], int]]] = {
    0x1A: lambda first, second: first & second,
    0x1B: _divided,
    0x1C: lambda first, second: first - second,
    0x1D: _remainder,
    0x1E: lambda first, second: first * second,
    0x21: lambda first, second: first | second,
    0x22: lambda first, second: first + second,
    0x24: lambda first, second: first << _count(second, 64),
    0x25: lambda first, second: first >> _count(second, 64),
    0x26: lambda first, second: _signed(first) >> _count(second, 64),
    0x27: lambda first, second: first ^ second,
    **{code: _compared(code) for code in _COMPARISONS},
}
_TYPED: Final[dict[int, Callable[[int, int], int]]] = {0x1B: _quotient}
_UNARY: Final[dict[int, Callable[[int], int]]] = {0x19: abs, 0x1F: lambda value: -value, 0x20: lambda value: ~value}
