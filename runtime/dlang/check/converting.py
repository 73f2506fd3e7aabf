"""Conversions that the checker inserts around an expression (docs/facts/dlang.md, Numbers).

Registers of DIF have 64 bits, and so has every value here: a type says how a value is read, and not how many of its
bits are kept. Only casts, memory and records truncate. A conversion too many is a wrong result for `(1 << 63) - 1` in
an int variable; one too few is a sign that is lost. So each function says what of libdtrace's dt_cg.c it follows.
"""

from dataclasses import replace
from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.operands import ranged
from kinst.runtime.dlang.types.conversions import is_scalar, is_signed, is_string, size_of, wrap
from kinst.runtime.dlang.types.types import CHAR_POINTER, LONG, STRING, ULONG, DType, bare
from kinst.targets.c_types import Array

WORD: Final = 8


def register_size(kind: DType) -> int:
    """The size of an integer or a pointer, in bytes; strings, arrays and functions are addresses here."""
    return size_of(kind, WORD) if is_scalar(kind) else WORD


def converted(value: program.Expression, to: DType) -> program.Expression:
    """A value of a compatible type, converted to type `to`."""
    if is_string(to):
        return as_string(value)
    return _as_word(value, to) if is_scalar(to) else value


def as_string(value: program.Expression) -> program.Expression:
    """stringof: the text at an address; the constant 0 is NULL."""
    if is_string(value.type):
        return value
    if isinstance(value, program.Integer) and value.value == 0:
        return program.Integer(STRING, 0)
    kind = bare(value.type)
    # An array of one character or none at the end of a struct stands for a longer one, as in the old struct dirent.
    limit = kind.length if isinstance(kind, Array) and (kind.length or 0) > 1 else None
    return program.StringOf(STRING, value, limit)


def _as_word(value: program.Expression, to: DType) -> program.Expression:
    if isinstance(value, program.Integer):
        return program.Integer(to, wrap(value.value, to))
    if is_string(value.type):
        return program.Convert(to, value)
    if register_size(to) < register_size(value.type) or is_signed(to) != is_signed(value.type):
        return program.Convert(to, value)
    return value


def assigned(value: program.Expression, to: DType) -> program.Expression:
    """A value for an assignment to a variable of type `to`: with all its 64 bits, as the kernel's DIF_OP_STGS stores
    it. Only constants are converted as in C, when the program is compiled; one that exceeds its own type keeps its bits
    in a variable that is as wide."""
    if is_string(to) or is_string(value.type) or not is_scalar(to):
        return converted(value, to)
    if isinstance(value, program.Integer):
        is_large = value.value != wrap(value.value, value.type)
        if not is_large or register_size(to) < register_size(value.type):
            return converted(value, to)
    return as_word_of_sign(value, signed=is_signed(to))


def cast(value: program.Expression, to: DType) -> program.Expression:
    """A value converted by a cast (libdtrace: dt_cg_typecast). A narrower type or another sign truncates it; a signed
    value that is widened is truncated to its own type first, since sums and variables may exceed that; anything else
    keeps its 64 bits."""
    if is_string(to):
        return as_string(value)
    if not is_scalar(to) or isinstance(value, program.Integer) or is_string(value.type):
        return converted(value, to)
    if _is_unsigned_word(value.type) and _is_unsigned_word(to):
        return retyped(value, to)
    size, wanted = register_size(value.type), register_size(to)
    if size < wanted and is_signed(value.type):
        return program.Convert(to, program.Convert(value.type, value))
    is_truncated = size > wanted or (size == wanted and is_signed(value.type) != is_signed(to))
    return program.Convert(to, value, keeps_bits=not is_truncated)


def as_word_of_sign(value: program.Expression, *, signed: bool) -> program.Expression:
    """A 64-bit operand for an operator that depends on the sign. The value of a narrow type may exceed the type here,
    so nothing is truncated."""
    if is_string(value.type):
        return program.Convert(CHAR_POINTER, value)
    if is_signed(value.type) == signed:
        return value
    to = LONG if signed else ULONG
    if isinstance(value, program.Integer):
        return program.Integer(to, ranged(value.value, to))
    return program.Convert(to, value)


def _is_unsigned_word(kind: DType) -> bool:
    return is_scalar(kind) and not is_signed(kind) and register_size(kind) == WORD


def retyped(value: program.Expression, to: DType) -> program.Expression:
    """The same address with another type, without a conversion at run time where the node allows it."""
    match value:
        case (
            program.Integer()
            | program.Linked()
            | program.Builtin()
            | program.Read()
            | program.Load()
            | program.Binary()
            | program.Call()
        ):
            return replace(value, type=to) if _is_unsigned_word(value.type) else program.Convert(to, value)
        case program.Convert(operand=operand):
            return program.Convert(to, operand) if _is_unsigned_word(value.type) else program.Convert(to, value)
        case _:
            return program.Convert(to, value)
