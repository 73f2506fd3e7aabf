"""Call frame information of an image -> how to unwind the frame of the function at an address (DWARF 5, 6.4).

A row says where the canonical frame address (CFA: the stack pointer before the call) is and where the caller's
registers are, in DWARF's register numbers. Rows that need an expression say so and leave it to other methods.

The numbers of instructions are those of pyelftools, but they are run here: a row takes 20 us, and 400 with pyelftools,
which decodes all rows of a function. Stacks may be taken at every hit of a probe.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import field, replace
from types import SimpleNamespace
from typing import Final

import numpy as np
from elftools.dwarf.constants import DW_CFA

from kinst.targets.errors import ImageError
from kinst.targets.functions.frames import Cie, FrameTable, frame_tables
from kinst.targets.image import Image
from kinst.targets.leb128 import leb, signed_leb
from kinst.targets.values import dataclass

_CFA: Final = SimpleNamespace(**{one.name: int(one) for one in DW_CFA})  # members of an enumeration take twice as long


@dataclass(frozen=True, slots=True)
class Saved:
    """The caller's register is in memory at CFA + `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class Value:
    """The caller's register is CFA + `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The caller's register is in another one."""

    register: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The caller's register has no value any more; of the return address: there is no caller."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression, which we do not evaluate."""


RegisterRule = Saved | Value | Moved | Lost | Unknown


@dataclass(frozen=True, slots=True)
class FrameRow:
    """The rules at one address. `cfa` is a register and an offset; None: an expression. A register without a rule still
    has the caller's value."""

    cfa: tuple[int, int] | None
    registers: Mapping[int, RegisterRule]
    return_register: int


class CallFrames:
    """The call frame information of one image, in address order."""

    def __init__(self, image: Image) -> None:
        """Find the FDEs: 0.1 s for the 45,000 of a vmlinux. Their instructions are read on demand."""
        self._tables = frame_tables(image)
        found: dict[int, tuple[FrameTable, int]] = {}
        for table in self._tables:
            for row in np.flatnonzero(table.size).tolist():
                found.setdefault(int(table.address[row]), (table, row))
        self._starts = sorted(found)
        self._places = [found[start] for start in self._starts]

    def row_at(self, address: int) -> FrameRow | None:
        """The rules before the instruction at a link address; None if no sound FDE covers it."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        table, row = self._places[at]
        if address - self._starts[at] >= int(table.size[row]):
            return None
        # Damage shows when an instruction is run: then other ways of unwinding are tried.
        try:
            return _row(table, row, address)
        except (IndexError, ValueError, ImageError):
            return None


@dataclass(frozen=True, slots=True)
class _Common:
    code_factor: int
    data_factor: int
    return_register: int
    instructions: tuple[int, int]  # from, to: offsets in the section
    has_augmentation: bool


@dataclass(slots=True)
class _State:
    """The row under construction."""

    cfa: tuple[int, int] | None = (0, 0)
    registers: dict[int, RegisterRule] = field(default_factory=dict)


def _row(table: FrameTable, row: int, address: int) -> FrameRow:
    data, start = table.content, int(table.address[row])
    cie = _common(data, table.cies[int(table.cie[row])])
    # The CIE's instructions are those that all of its functions begin with.
    first = _Program(data, cie, start, None)
    first.run(*cie.instructions, address)
    program = _Program(data, cie, start, first.state)
    at = int(table.rest[row])
    # Of the augmentation data only the length matters here: it holds the LSDA and the like.
    if cie.has_augmentation:
        length, at = leb(data, at)
        at += length
    program.run(at, int(table.end[row]), address)
    return FrameRow(program.state.cfa, program.state.registers, cie.return_register)


def _common(data: bytes, cie: Cie) -> _Common:
    """version (1) | augmentation, a string | [4: address size, segment size] | code factor | data factor | return
    address register | [z: length, data] | instructions"""
    version = data[cie.body]
    # Since version 4 the sizes of an address and of a segment selector follow.
    at = cie.body + 1 + len(cie.augmentation) + 1 + (2 if version >= 4 else 0)
    code_factor, at = leb(data, at)
    data_factor, at = signed_leb(data, at)
    # Version 1 has the return address register as a byte, later ones as LEB128.
    if version == 1:
        return_register, at = data[at], at + 1
    else:
        return_register, at = leb(data, at)
    has_augmentation = cie.augmentation.startswith(b"z")
    if has_augmentation:
        length, at = leb(data, at)
        at += length
    return _Common(code_factor, data_factor, return_register, (at, cie.end), has_augmentation)


class _Program:
    """Runs the instructions of a CIE or an FDE up to an address. `initial` is the state that the CIE's left."""

    def __init__(self, data: bytes, cie: _Common, start: int, initial: _State | None) -> None:
        self._data = data
        self._cie = cie
        self._location = start
        self._initial = initial
        self._at = 0
        self._stack: list[_State] = []
        self.state = _State() if initial is None else _copy(initial)

    def run(self, start: int, end: int, address: int) -> None:
        """Run until the next row begins after `address`: what follows does not concern it."""
        self._at = start
        while self._at < end and self._location <= address:
            self._step()

    def _step(self) -> None:
        opcode = self._data[self._at]
        self._at += 1
        operand = opcode & 0x3F
        match opcode & 0xC0:  # three have an operand in the low six bits
            case _CFA.advance_loc:
                self._location += operand * self._cie.code_factor
            case _CFA.offset:
                self.state.registers[operand] = Saved(self._unsigned() * self._cie.data_factor)
            case _CFA.restore:
                self._restore(operand)
            case _:
                self._extended(opcode)

    def _extended(self, opcode: int) -> None:
        if opcode in _ADVANCES:
            size = _ADVANCES[opcode]
            self._location += int.from_bytes(self._take(size), "little") * self._cie.code_factor
        elif opcode in _CFA_OPCODES:
            self._define_cfa(opcode)
        elif opcode in _STACK_OPCODES:
            self._remember_or_restore(opcode)
        else:
            self._register_rule(opcode)

    def _define_cfa(self, opcode: int) -> None:
        # A definition of the register or the offset alone keeps the other.
        register, offset = self.state.cfa or (-1, 0)
        match opcode:
            case _CFA.def_cfa:
                self.state.cfa = self._unsigned(), self._unsigned()
            case _CFA.def_cfa_register:
                self.state.cfa = self._unsigned(), offset
            case _CFA.def_cfa_offset:
                self.state.cfa = register, self._unsigned()
            case _CFA.def_cfa_sf:
                self.state.cfa = self._unsigned(), self._signed() * self._cie.data_factor
            case _CFA.def_cfa_offset_sf:
                self.state.cfa = register, self._signed() * self._cie.data_factor
            case _:  # def_cfa_expression
                self._take(self._unsigned())
                self.state.cfa = None

    def _remember_or_restore(self, opcode: int) -> None:
        if opcode == _CFA.remember_state:
            self._stack.append(_copy(self.state))
        # Only damage pops more than was pushed.
        elif self._stack:  # restore_state
            self.state = self._stack.pop()

    def _register_rule(self, opcode: int) -> None:
        if opcode in _IGNORED:
            if opcode == _CFA.GNU_args_size:
                self._unsigned()
            return
        register, rules = self._unsigned(), self.state.registers
        match opcode:
            case _CFA.restore_extended:
                self._restore(register)
            case _CFA.undefined:
                # DWARF says that the register has no value; compilers mark the outermost frame so.
                rules[register] = Lost()
            case _CFA.same_value:
                rules.pop(register, None)
            case _CFA.register:
                rules[register] = Moved(self._unsigned())
            case _CFA.expression | _CFA.val_expression:
                self._take(self._unsigned())
                rules[register] = Unknown()
            case _:
                rules[register] = self._relative(opcode)

    def _relative(self, opcode: int) -> RegisterRule:
        """A rule with an offset from the CFA."""
        factor = self._cie.data_factor
        match opcode:
            case _CFA.offset_extended:
                return Saved(self._unsigned() * factor)
            case _CFA.offset_extended_sf:
                return Saved(self._signed() * factor)
            case 0x2F:  # DW_CFA_GNU_negative_offset_extended, which pyelftools lacks
                return Saved(-self._unsigned() * factor)
            case _CFA.val_offset:
                return Value(self._unsigned() * factor)
            case _CFA.val_offset_sf:
                return Value(self._signed() * factor)
            case _:
                raise ValueError(f"call frame instruction {opcode:#x}")

    def _restore(self, register: int) -> None:
        """To what the CIE says."""
        rule = None if self._initial is None else self._initial.registers.get(register)
        if rule is None:
            self.state.registers.pop(register, None)
        else:
            self.state.registers[register] = rule

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def _unsigned(self) -> int:
        value, self._at = leb(self._data, self._at)
        return value

    def _signed(self) -> int:
        value, self._at = signed_leb(self._data, self._at)
        return value


# Bytes of their operand.
_ADVANCES: Final = {_CFA.advance_loc1: 1, _CFA.advance_loc2: 2, _CFA.advance_loc4: 4}
# arm64's negate_ra_state has no operand: signed addresses show by their upper bits; GNU_args_size has one.
_IGNORED: Final = frozenset({_CFA.nop, _CFA.AARCH64_negate_ra_state, _CFA.GNU_args_size})
_CFA_OPCODES: Final = frozenset(
    {
        *(_CFA.def_cfa, _CFA.def_cfa_register, _CFA.def_cfa_offset, _CFA.def_cfa_expression),
        *(_CFA.def_cfa_sf, _CFA.def_cfa_offset_sf),
    }
)
_STACK_OPCODES: Final = frozenset({_CFA.remember_state, _CFA.restore_state})


def _copy(state: _State) -> _State:
    return replace(state, registers=dict(state.registers))
