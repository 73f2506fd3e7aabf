"""The bytes of a location expression (DWARF 5, 2.5, 2.6 and 7.7.1) -> its operations.

GNU's older numbers of operations that DWARF 5 adopted become DWARF's. References to base types and to .debug_addr are
looked up. An expression takes 2 to 8 us. With pyelftools it takes 4 to 12, and 140 if it has an entry value, as most
expressions of inlined calls do.
"""

from typing import Final, NamedTuple, Protocol

from kinst.targets.debuginfo.dwarf.unit_terms import BaseType
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb, signed_leb

OPTIMISED_OUT: Final = "optimised out"
_LONGEST_ENTERED: Final = 16  # bytes of DW_OP_entry_value's own expression: a register, or a load from where it points
_WIDEST: Final = 16  # bytes of a base type

# DW_OP codes that are treated separately; the rest of arithmetic is in `location_arithmetic`.
ADDR, DEREF = 0x03, 0x06
CONST_FIRST, CONST_LAST = 0x08, 0x11
DUP, DROP, OVER, PICK, SWAP, ROT = 0x12, 0x13, 0x14, 0x15, 0x16, 0x17
PLUS_UCONST, BRA, SKIP = 0x23, 0x28, 0x2F
LIT0, REG0, BREG0, REGX = 0x30, 0x50, 0x70, 0x90
FBREG, BREGX, PIECE, DEREF_SIZE, NOP = 0x91, 0x92, 0x93, 0x94, 0x96
CALL_FRAME_CFA, BIT_PIECE, IMPLICIT_VALUE, STACK_VALUE = 0x9C, 0x9D, 0x9E, 0x9F
IMPLICIT_POINTER, ADDRX, CONSTX, ENTRY_VALUE = 0xA0, 0xA1, 0xA2, 0xA3
CONST_TYPE, REGVAL_TYPE, DEREF_TYPE, CONVERT, REINTERPRET = 0xA4, 0xA5, 0xA6, 0xA8, 0xA9
GNU_UNINIT, GNU_PARAMETER_REF = 0xF0, 0xFA
_GNU: Final = {
    0xF2: IMPLICIT_POINTER, 0xF3: ENTRY_VALUE, 0xF4: CONST_TYPE, 0xF5: REGVAL_TYPE, 0xF6: DEREF_TYPE, 0xF7: CONVERT,
    0xF9: REINTERPRET, 0xFB: ADDRX, 0xFC: CONSTX,
}  # fmt: skip


class Entered(NamedTuple):
    """What DW_OP_entry_value refers to, all at the function's entry: a register; with a `size`, that many bytes of
    memory to which the register pointed; or (DW_OP_GNU_parameter_ref) a parameter that the function no longer has, by
    its offset in .debug_info."""

    register: int
    size: int = 0
    parameter: int = -1


Operand = int | bytes | BaseType | Entered | None

# Operands, of the codes that have any: u and s with a size in bytes, U and S for LEB128, B for a block, b for a block
# whose length is a byte, A for an index into .debug_addr, T for a base type, E for the expression of
# DW_OP_entry_value, P for a parameter.
_OPERANDS: Final[dict[int, tuple[str, ...]]] = {
    ADDR: ("u8",), 0x08: ("u1",), 0x09: ("s1",), 0x0A: ("u2",), 0x0B: ("s2",), 0x0C: ("u4",), 0x0D: ("s4",),
    0x0E: ("u8",), 0x0F: ("s8",), 0x10: ("U",), 0x11: ("S",), PICK: ("u1",), PLUS_UCONST: ("U",), BRA: ("s2",),
    SKIP: ("s2",), **dict.fromkeys(range(BREG0, BREG0 + 32), ("S",)), REGX: ("U",), FBREG: ("S",), BREGX: ("U", "S"),
    PIECE: ("U",), BIT_PIECE: ("U", "U"), DEREF_SIZE: ("u1",), IMPLICIT_VALUE: ("B",), ADDRX: ("A",), CONSTX: ("A",),
    ENTRY_VALUE: ("E",), GNU_PARAMETER_REF: ("P",), CONST_TYPE: ("T", "b"), REGVAL_TYPE: ("U", "T"),
    DEREF_TYPE: ("u1", "T"), CONVERT: ("T",), REINTERPRET: ("T",),
}  # fmt: skip
_PLAIN: Final = frozenset(
    {DEREF, *range(DUP, ROT + 1), *range(0x19, 0x28), *range(0x29, 0x2F), *range(LIT0, BREG0), NOP}
    | {CALL_FRAME_CFA, STACK_VALUE, GNU_UNINIT}
)


class Terms(Protocol):
    """What an expression needs from its unit (`kinst.targets.debuginfo.dwarf.unit_terms`). All raise ImageError."""

    @property
    def unit(self) -> int:
        """The unit's offset in .debug_info."""
        ...

    def base_type(self, offset: int) -> BaseType:
        """The base type at an offset into the unit."""
        ...

    def address(self, index: int) -> int:
        """A word of .debug_addr."""
        ...


class Operation(NamedTuple):
    """One operation: its code, operands, and where the next begins."""

    code: int
    operands: tuple[Operand, ...]
    following: int


def decoded(data: bytes, terms: Terms | None) -> dict[int, Operation]:
    """The operations by the offsets at which they begin. Raises ValueError for what is not an expression, or for
    unknown operations."""
    found: dict[int, Operation] = {}
    at = 0
    try:
        while at < len(data):
            operation = found[at] = _operation(data, at, terms)
            at = operation.following
    except IndexError:
        raise ValueError("its location is cut short") from None
    except ImageError as error:
        raise ValueError(str(error)) from None
    return found


def _operation(data: bytes, at: int, terms: Terms | None) -> Operation:
    start, code = at, _GNU.get(data[at], data[at])
    if code == IMPLICIT_POINTER:
        raise ValueError(OPTIMISED_OUT)  # a pointer to something that is not in memory
    if code not in _OPERANDS and code not in _PLAIN:
        raise ValueError(f"its location has an operation {data[at]:#04x} that is not known here")
    at += 1
    operands: list[Operand] = []
    for kind in _OPERANDS.get(code, ()):
        operand, at = _operand(data, at, kind, terms)
        operands.append(operand)
    if at > len(data):
        raise ValueError(f"its location is cut short at byte {start}")
    return Operation(ENTRY_VALUE if code == GNU_PARAMETER_REF else code, tuple(operands), at)


def _operand(data: bytes, at: int, kind: str, terms: Terms | None) -> tuple[Operand, int]:
    match kind:
        case "U" | "S":
            return signed_leb(data, at) if kind == "S" else leb(data, at)
        case "B" | "E":
            size, at = leb(data, at)
            return _entered(data[at : at + size]) if kind == "E" else data[at : at + size], at + size
        case "b":
            size = int.from_bytes(data[at : at + 1])
            return data[at + 1 : at + 1 + size], at + 1 + size
        case "A":
            index, at = leb(data, at)
            return _known(terms).address(index), at
        case "T":
            offset, at = leb(data, at)
            return _integer_type(offset, terms), at
        case "P":
            offset = int.from_bytes(data[at : at + 4], "little")
            return Entered(-1, 0, _known(terms).unit + offset), at + 4
        case _:
            size = int(kind[1])
            return int.from_bytes(data[at : at + size], "little", signed=kind[0] == "s"), at + size


def _known(terms: Terms | None) -> Terms:
    if terms is None:
        raise ValueError("its location needs a unit of debug information that is not known here")
    return terms


def _integer_type(offset: int, terms: Terms | None) -> BaseType | None:
    """The base type at an offset; None for DWARF's own type, words without a type. Raises ValueError for others."""
    if not offset:
        return None
    found = _known(terms).base_type(offset)
    if not found.is_integer or found.size > _WIDEST:
        why = f"an integer of {found.size} bytes" if found.is_integer else "no integer"
        raise ValueError(f"its location computes with {found.name or 'a type without a name'}, which is {why}")
    return found


def _entered(data: bytes) -> Entered | None:
    """What the expression of DW_OP_entry_value refers to, if it is a register or memory to which one pointed; else
    None."""
    if not 0 < len(data) <= _LONGEST_ENTERED:
        return None
    operations = [*decoded(data, None).values()]
    first, rest = operations[0], operations[1:]
    if REG0 <= first.code < BREG0 or first.code == REGX:
        return None if rest else Entered(first.code - REG0 if first.code != REGX else integer(first.operands[0]))
    register, offset = first.code - BREG0, first.operands[-1:]
    if first.code == BREGX:
        register = integer(first.operands[0])
    elif not 0 <= register < 32:
        return None
    if offset != (0,) or len(rest) != 1 or rest[0].code not in (DEREF, DEREF_SIZE):
        return None
    return Entered(register, 8 if rest[0].code == DEREF else integer(rest[0].operands[0]))


def integer(operand: Operand) -> int:
    """An operand that is a number."""
    assert isinstance(operand, int), "the table of operands says so"
    return operand
