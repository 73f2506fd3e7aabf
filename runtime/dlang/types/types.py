"""The types that D adds to C's, and C's basic types."""

from typing import Final

from kinst.targets.c_types import Array, CType, Integer, IntegerKind, Pointer, Qualified, Typedef, Void
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class String:
    """`string`: bytes by value, not more than the option strsize allows."""


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Something that has no C type: a stack, a symbol's name, the result of an action. Messages show it as "<DYN>"."""

    name: str


DType = CType | String | Dynamic

STRING: Final = String()
STACK: Final = Dynamic("stack")  # stack(), ustack(), jstack() as keys
SYMBOL: Final = Dynamic("symaddr")  # sym(), func(), mod(), usym(), ... as keys
VOID: Final = Void()

CHAR: Final = Integer("char", 1, is_signed=True, kind=IntegerKind.CHARACTER)
SCHAR: Final = Integer("signed char", 1, is_signed=True, kind=IntegerKind.CHARACTER)
UCHAR: Final = Integer("unsigned char", 1, is_signed=False, kind=IntegerKind.CHARACTER)
SHORT: Final = Integer("short", 2, is_signed=True)
USHORT: Final = Integer("unsigned short", 2, is_signed=False)
INT: Final = Integer("int", 4, is_signed=True)
UINT: Final = Integer("unsigned int", 4, is_signed=False)
LONG: Final = Integer("long", 8, is_signed=True)
ULONG: Final = Integer("unsigned long", 8, is_signed=False)
LONGLONG: Final = Integer("long long", 8, is_signed=True)
ULONGLONG: Final = Integer("unsigned long long", 8, is_signed=False)
BOOL: Final = Integer("_Bool", 1, is_signed=False, kind=IntegerKind.BOOLEAN)

INT8: Final = Typedef("int8_t", SCHAR)
INT16: Final = Typedef("int16_t", SHORT)
INT32: Final = Typedef("int32_t", INT)
INT64: Final = Typedef("int64_t", LONG)
UINT8: Final = Typedef("uint8_t", UCHAR)
UINT16: Final = Typedef("uint16_t", USHORT)
UINT32: Final = Typedef("uint32_t", UINT)
UINT64: Final = Typedef("uint64_t", ULONG)
SIZE: Final = Typedef("size_t", ULONG)
SSIZE: Final = Typedef("ssize_t", LONG)
UINTPTR: Final = Typedef("uintptr_t", ULONG)
INTPTR: Final = Typedef("intptr_t", LONG)
PTRDIFF: Final = Typedef("ptrdiff_t", LONG)
VOID_POINTER: Final = Pointer(VOID)
CHAR_POINTER: Final = Pointer(CHAR)


def embedded_string(size: int) -> Typedef:
    """`string` inside a C type: a member, an element of an array, or what a pointer points to. `bare` makes it a
    string."""
    return Typedef("string", Array(CHAR, size))


def bare(kind: DType) -> DType:
    """The type without typedefs and qualifiers; D's own types stay as they are."""
    while isinstance(kind, Typedef | Qualified):
        if isinstance(kind, Typedef) and kind.name == "string" and isinstance(kind.target, Array):
            return STRING
        kind = kind.target
    return kind
