"""Which operands are compatible: the rules of `conversions`, and that a constant 0 is a null pointer."""

from kinst.runtime.dlang.check.operands import Operand
from kinst.runtime.dlang.types.conversions import (
    are_compatible,
    are_compatible_pointers,
    common_pointer,
    is_argument_compatible,
    is_dynamic,
    is_integer,
    is_string,
    is_string_like,
)
from kinst.runtime.dlang.types.types import CHAR, DType, bare
from kinst.targets.c_types import Array, Pointer


def target_of(kind: DType) -> DType | None:
    """The type that a pointer points to, or of the elements of an array or a string; None for other types."""
    if is_string(kind):
        return CHAR
    match bare(kind):
        case Pointer(target=target):
            return target
        case Array(element=element):
            return element
        case _:
            return None


def pointer_type(left: Operand, right: Operand) -> DType | None:
    """The common type of two pointers (or arrays, strings): both point to the same type, one points to void, or one
    operand is the constant 0. None if they are not compatible."""
    if is_dynamic(left.type) or is_dynamic(right.type):
        return None
    first, second = target_of(left.type), target_of(right.type)
    if first is None:
        return right.type if left.constant == 0 and second is not None else None
    if second is None:
        return left.type if right.constant == 0 else None
    if is_string(left.type) or is_string(right.type):
        return left.type if are_compatible(first, second) else None
    return common_pointer(left.type, right.type) if are_compatible_pointers(left.type, right.type) else None


def is_accepted(kind: DType, operand: Operand) -> bool:
    """Whether an operand may be assigned to, or passed for, something of type `kind`."""
    if operand.action:
        return False
    is_zero = operand.constant == 0
    if is_zero and is_string(kind):
        return True
    return is_argument_compatible(kind, operand.type, is_zero=is_zero)


def are_comparable(left: Operand, right: Operand) -> bool:
    """Whether == and the other comparisons take these operands."""
    if left.action or right.action or is_dynamic(left.type) or is_dynamic(right.type):
        return False
    if are_compatible(left.type, right.type) or (is_integer(left.type) and is_integer(right.type)):
        return True
    both_text = is_string_like(left.type) and is_string_like(right.type)
    if both_text and (is_string(left.type) or is_string(right.type)):
        return True
    return pointer_type(left, right) is not None
