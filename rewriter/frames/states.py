"""Rules of one row of call frame information as values, and the difference of two as instructions (DWARF 5, 6.4.2)."""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from types import SimpleNamespace
from typing import Final

from kinst.targets.values import dataclass

_CFA: Final = SimpleNamespace(
    remember_state=0x0A, def_cfa=0x0C, def_cfa_register=0x0D, def_cfa_offset=0x0E, def_cfa_expression=0x0F,
    same_value=0x08, undefined=0x07, register=0x09, expression=0x10, val_expression=0x16, offset=0x80,
    offset_extended=0x05, offset_extended_sf=0x11, val_offset_sf=0x15, negate_ra_state=0x2D,
)  # fmt: skip
DATA_FACTOR: Final = -8
BREG: Final = 0x70  # DW_OP_breg0
BREGX: Final = 0x92
CONSTS: Final = 0x11
PLUS: Final = 0x22
DEREF: Final = 0x06


class How(Enum):
    """Where a register of the caller is: in memory at CFA + number, CFA + number itself, in another register, where an
    expression says, what an expression gives, or nowhere."""

    SAVED = "saved"
    VALUE = "value"
    MOVED = "moved"
    AT = "at"
    GIVEN = "given"
    LOST = "lost"


Rule = tuple[How, int, bytes]


@dataclass(frozen=True, slots=True)
class State:
    """The rules at one place: the CFA is a register and an offset, or an expression (then the register is -1). A
    register without a rule has the caller's value. `is_signed`: the return address is signed (arm64)."""

    register: int
    offset: int
    expression: bytes = b""
    rules: tuple[tuple[int, Rule], ...] = ()
    is_signed: bool = False


@dataclass(slots=True)
class Building:
    """A state under construction."""

    register: int = 0
    offset: int = 0
    expression: bytes = b""
    rules: dict[int, Rule] = field(default_factory=dict)
    is_signed: bool = False

    def define(self, register: int, offset: int) -> None:
        """The CFA is a register and an offset."""
        self.register, self.offset, self.expression = register, offset, b""

    def define_by(self, expression: bytes) -> None:
        """The CFA is what an expression gives."""
        self.register, self.offset, self.expression = -1, 0, expression

    def sign(self) -> None:
        """The return address is signed, or not any more."""
        self.is_signed = not self.is_signed

    def done(self) -> State:
        """As it is now."""
        return State(self.register, self.offset, self.expression, tuple(sorted(self.rules.items())), self.is_signed)

    def copy(self) -> "Building":
        """One that changes by itself."""
        return Building(self.register, self.offset, self.expression, dict(self.rules), self.is_signed)


def building_of(state: State) -> Building:
    """A state to be changed."""
    return Building(state.register, state.offset, state.expression, dict(state.rules), state.is_signed)


def unsigned(value: int) -> bytes:
    """ULEB128."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def signed(value: int) -> bytes:
    """SLEB128."""
    found = bytearray()
    while not -0x40 <= value < 0x40:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value & 0x7F))


def based(register: int, offset: int) -> bytes:
    """An expression: a register plus an offset."""
    if register < 32:
        return bytes((BREG + register,)) + signed(offset)
    return bytes((BREGX,)) + unsigned(register) + signed(offset)


def transition(before: State, after: State) -> bytes:
    """The instructions that make one row of another."""
    code, old, new = _cfa(before, after), dict(before.rules), dict(after.rules)
    code += b"".join(_rule(register, rule) for register, rule in new.items() if old.get(register) != rule)
    code += b"".join(bytes((_CFA.same_value,)) + unsigned(one) for one in old if one not in new)
    return code + (bytes((_CFA.negate_ra_state,)) if before.is_signed != after.is_signed else b"")


def _cfa(before: State, after: State) -> bytes:
    if (before.register, before.offset, before.expression) == (after.register, after.offset, after.expression):
        return b""
    if after.register < 0 or after.offset < 0:
        expression = after.expression if after.register < 0 else based(after.register, after.offset)
        return bytes((_CFA.def_cfa_expression,)) + unsigned(len(expression)) + expression
    if before.register == after.register and before.offset >= 0:
        return bytes((_CFA.def_cfa_offset,)) + unsigned(after.offset)
    return bytes((_CFA.def_cfa,)) + unsigned(after.register) + unsigned(after.offset)


def _rule(register: int, rule: Rule) -> bytes:
    how, number, expression = rule
    name = unsigned(register)
    match how:
        case How.SAVED:
            return _saved(register, number)
        case How.VALUE:
            if number % DATA_FACTOR:
                return _with(_CFA.val_expression, name, _from_cfa(number))
            return bytes((_CFA.val_offset_sf,)) + name + signed(number // DATA_FACTOR)
        case How.MOVED:
            return bytes((_CFA.register,)) + name + unsigned(number)
        case How.AT:
            return _with(_CFA.expression, name, expression)
        case How.GIVEN:
            return _with(_CFA.val_expression, name, expression)
        case How.LOST:
            return bytes((_CFA.undefined,)) + name


def _saved(register: int, offset: int) -> bytes:
    name = unsigned(register)
    if offset % DATA_FACTOR:
        return _with(_CFA.expression, name, _from_cfa(offset))
    factored = offset // DATA_FACTOR
    if factored < 0:
        return bytes((_CFA.offset_extended_sf,)) + name + signed(factored)
    if register < 0x40:
        return bytes((_CFA.offset | register,)) + unsigned(factored)
    return bytes((_CFA.offset_extended,)) + name + unsigned(factored)


def _from_cfa(offset: int) -> bytes:
    """The expression of a register's rule begins with the CFA on its stack."""
    return bytes((CONSTS,)) + signed(offset) + bytes((PLUS,))


def _with(opcode: int, name: bytes, expression: bytes) -> bytes:
    return bytes((opcode,)) + name + unsigned(len(expression)) + expression


@dataclass(frozen=True, slots=True)
class Motion:
    """What code of a trampoline has done to the guest's stack pointer and registers, in DWARF's numbers, when it is
    about to run an instruction: the pointer is `depth` bytes lower; and where a register's value is that is not in it:
    in another one, in memory at a distance from the pointer, or (None, None) nowhere."""

    depth: int = 0
    homes: tuple[tuple[int, tuple[int | None, int | None]], ...] = ()

    @property
    def by_register(self) -> Mapping[int, tuple[int | None, int | None]]:
        """The same as a table."""
        return dict(self.homes)


STILL: Final = Motion()
