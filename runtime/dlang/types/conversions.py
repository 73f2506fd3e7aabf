"""What types allow: D's rules for operands, arguments and assignments, and the ranges of values.

The rules are libdtrace's, which are looser and odder than C's: narrow types are not promoted to int, integers of any
width are compatible, strings are compatible with char arrays and char pointers, and pointers only with pointers to
compatible types, void * and the constant 0.
"""

from typing import Final

from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.targets.c_types import (
    POINTER_SIZE,
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
)
from kinst.targets.c_types import size_of as c_size_of

WORD: Final = (1 << 64) - 1

# Of two types of the same width and sign, the type of the result is the later one in libdtrace's table of intrinsic
# types: messages and print() show its name.
_TABLE: Final = (
    (types.CHAR, types.SHORT, types.INT, types.LONG, types.LONGLONG),
    (types.SCHAR, types.UCHAR, types.USHORT, types.UINT, types.ULONG, types.ULONGLONG, types.BOOL),
)
_ORDER: Final = {kind.name: order for order, kind in enumerate(_TABLE[0] + _TABLE[1])}

# -- what a type is ---------------------------------------------------------------------------------------------------


def is_integer(kind: DType) -> bool:
    """Whether it is an integer or an enumeration."""
    return isinstance(bare(kind), Integer | EnumType)


def is_float(kind: DType) -> bool:
    """Whether it is a floating-point type. Such values may be traced, but not computed with."""
    return isinstance(bare(kind), Float)


def is_pointer(kind: DType) -> bool:
    """Whether it is a pointer or an array, which decays to one. A string is not."""
    return isinstance(bare(kind), Pointer | Array)


def is_scalar(kind: DType) -> bool:
    """Whether it can be a condition: integers, enumerations and pointers can, arrays cannot."""
    return isinstance(bare(kind), Integer | EnumType | Pointer)


def is_arithmetic(kind: DType) -> bool:
    """Whether * / + - take it: integers and enumerations, since D does not compute with floating point."""
    return is_integer(kind)


def is_aggregate(kind: DType) -> bool:
    """Whether it is a struct or a union."""
    return isinstance(bare(kind), Aggregate)


def is_whole(kind: DType) -> bool:
    """Whether it is a struct or a union of known size, which can be copied."""
    return is_aggregate(kind) and size_of(kind, 1) > 0


def is_function(kind: DType) -> bool:
    """Whether it is a function type."""
    return isinstance(bare(kind), Function)


def is_string(kind: DType) -> bool:
    """Whether it is D's own `string`."""
    return isinstance(bare(kind), String)


def is_string_like(kind: DType) -> bool:
    """Whether it is promoted to a string: string, char [] and char *, but not unsigned char [] or *."""
    match bare(kind):
        case String():
            return True
        case Pointer(target=element) | Array(element=element):
            return is_character(element)
        case _:
            return False


def is_character(kind: DType) -> bool:
    """Whether it is char, even where the ABI makes that unsigned (arm64, riscv64), or signed char."""
    match bare(kind):
        case Integer(name=name, is_signed=is_signed, kind=IntegerKind.CHARACTER):
            return is_signed or name == "char"
        case _:
            return False


def is_void(kind: DType) -> bool:
    """Whether it is void, apart from typedefs and qualifiers."""
    return isinstance(bare(kind), Void)


def is_dynamic(kind: DType) -> bool:
    """Whether it is one of D's types that C lacks: a stack, a symbol's name, an action's result."""
    return isinstance(kind, Dynamic)


def is_sizeless_pointer(kind: DType) -> bool:
    """Whether it points to void or to a function, so that no arithmetic is possible."""
    match bare(kind):
        case Pointer(target=target):
            return isinstance(bare(target), Void | Function)
        case _:
            return False


def is_signed(kind: DType) -> bool:
    """Whether values of the type may be negative: not those of pointers, strings and anything else but integers."""
    match bare(kind):
        case Integer(is_signed=signed) | EnumType(base=Integer(is_signed=signed)):
            return signed
        case _:
            return False


def size_of(kind: DType, string_size: int) -> int:
    """The size in bytes; 0 if there is none: void, functions, incomplete types, arrays of unknown length."""
    if isinstance(kind, Dynamic):
        return 0
    plain = bare(kind)
    if isinstance(plain, String):
        return string_size
    return 0 if isinstance(plain, Dynamic) else c_size_of(plain) or 0


def element_of(kind: DType) -> DType | None:
    """The type that a pointer points to, or of an array's elements; None for other types."""
    match bare(kind):
        case Pointer(target=target):
            return _plain(target)
        case Array(element=element):
            return _plain(element)
        case _:
            return None


def _plain(kind: CType) -> DType:
    """The type of a part taken by itself: a string inside a C type becomes a string again."""
    return types.STRING if is_string(kind) else kind


# -- arithmetic -------------------------------------------------------------------------------------------------------


def promote(kind: DType) -> Integer:
    """The integer type of an operand. Enumerations become int. Unlike in C, narrow types are not promoted: `char +
    char` is a char, whose 64 bits are kept until something truncates them."""
    match bare(kind):
        case Integer() as integer:
            return integer
        case EnumType():
            return types.INT
        case _:
            raise TypeError(f"not an integer type: {kind}")


def arithmetic_type(left: DType, right: DType) -> CType:
    """The type of left + right for two integers, as messages show it: the name of a typedef is kept.

    It is the wider type; if the widths are equal, the unsigned one; if the signs are equal, the later in libdtrace's
    table.
    """
    return _operand(left) if _rank(promote(left)) >= _rank(promote(right)) else _operand(right)


def usual(left: DType, right: DType) -> Integer:
    """The integer type of left + right, without typedefs."""
    return promote(arithmetic_type(left, right))


def _operand(kind: DType) -> CType:
    while isinstance(kind, Qualified):
        kind = kind.target
    return types.INT if isinstance(kind, String | Dynamic) or isinstance(bare(kind), EnumType) else kind


def _rank(kind: Integer) -> tuple[int, bool, int]:
    return kind.size, not kind.is_signed, _ORDER.get(kind.name, -1)


def wrap(value: int, kind: DType) -> int:
    """`value` converted to this type: truncated to its size, extended by its sign."""
    match bare(kind):
        case Integer(size=size, is_signed=signed) | EnumType(base=Integer(size=size, is_signed=signed)):
            return wrap_bits(value, size * 8, is_signed=signed)
        case Float(size=size) if size < POINTER_SIZE:
            return wrap_bits(value, size * 8, is_signed=False)
        case _:
            return value & WORD


def wrap_bits(value: int, bits: int, *, is_signed: bool) -> int:
    """The low bits of `value`, as a number of that width."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if is_signed and value >> bits - 1 else value


# -- compatibility ----------------------------------------------------------------------------------------------------


def are_compatible(left: DType, right: DType) -> bool:
    """Whether two types are the same but for typedefs and qualifiers. Structs from two declarations are the same if tag
    and size are."""
    match bare(left), bare(right):
        case Pointer(target=one), Pointer(target=other):
            return are_compatible(one, other)
        case Array(element=one, length=length), Array(element=other, length=same) if length == same:
            return are_compatible(one, other)
        case Aggregate() as one_aggregate, Aggregate() as other_aggregate:
            return _are_same_aggregates(one_aggregate, other_aggregate)
        case Function(), Function():
            return True  # as in libdtrace, which does not compare prototypes
        case one, other:
            return one == other


def _are_same_aggregates(one: Aggregate, other: Aggregate) -> bool:
    if one is other:
        return True
    if one.kind is not other.kind or one.tag != other.tag or not one.tag:
        return False
    return one.members is None or other.members is None or one.size == other.size


def are_compatible_pointers(left: DType, right: DType) -> bool:
    """Whether both are pointers (or arrays) to compatible types, or one points to void. A string is an array of char
    here."""
    one = types.CHAR if is_string(left) else element_of(left)
    other = types.CHAR if is_string(right) else element_of(right)
    if one is None or other is None:
        return False
    return is_void(one) or is_void(other) or are_compatible(one, other)


def common_pointer(left: DType, right: DType) -> DType:
    """The more precise of two compatible pointers: `char *` for `char *` and `void *`."""
    other = element_of(right)
    return left if other is None or is_void(other) else right


def is_argument_compatible(parameter: DType, argument: DType, *, is_zero: bool = False) -> bool:
    """Whether an argument fits a parameter, an associative array's key or a variable. `is_zero`: the argument is the
    integer constant 0, which is a null pointer."""
    if is_dynamic(parameter) or is_dynamic(argument):
        return parameter == argument
    if is_integer(parameter):
        return is_integer(argument)
    if is_string_like(parameter) and is_string_like(argument):
        return True
    if is_aggregate(parameter) or is_function(parameter):
        return are_compatible(parameter, argument)
    if is_integer(argument):
        return is_zero and (is_pointer(parameter) or is_string(parameter))
    return are_compatible_pointers(parameter, argument)


def is_castable(to: DType, source: DType) -> bool:
    """Whether the cast `(to)source` is allowed: between compatible types, scalar to scalar, anything to void, arrays to
    pointers, scalars and pointers to string."""
    if is_dynamic(to) or is_dynamic(source):
        return False
    if is_void(to) or are_compatible(to, source):
        return True
    if is_scalar(to) and (is_scalar(source) or is_function(source)):
        return True
    if isinstance(bare(to), Pointer):
        return is_pointer(source)
    return is_string(to) and (is_scalar(source) or is_pointer(source))
