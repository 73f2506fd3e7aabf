"""Call frame information of an image -> how to leave the frame of the function at an address (DWARF 5, 6.4).

A row says where the canonical frame address (CFA: the stack pointer before the call) is and where the caller's
registers are, in DWARF's register numbers. Rows that need an expression say so and leave it to other methods.
"""

import struct
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kinst.targets.frames import Described, FrameContent, frame_contents, skip_leb128
from kinst.targets.image import Image


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
    """The rules at one address. `cfa` is a register and an offset; None: an expression. A register without a rule has
    the caller's value."""

    cfa: tuple[int, int] | None
    registers: Mapping[int, RegisterRule]
    return_register: int


class CallFrames:
    """The call frame information of one image, in address order."""

    def __init__(self, image: Image) -> None:
        """Find the FDEs: 0.5 s for the 46,000 of a vmlinux. Their instructions are read when they are needed."""
        found: dict[int, tuple[FrameContent, Described]] = {}
        for content in frame_contents(image):
            for entry in content.entries:
                if entry.size:
                    found.setdefault(entry.address, (content, entry))
        self._starts = sorted(found)
        self._entries = [found[start] for start in self._starts]

    def row_at(self, address: int) -> FrameRow | None:
        """The rules that hold before the instruction at a link address; None where no sound FDE covers it."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        content, entry = self._entries[at]
        if address - entry.address >= entry.size:
            return None
        try:
            return _row(content, entry, address)
        except (IndexError, struct.error, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class _Cie:
    code_factor: int
    data_factor: int
    return_register: int
    instructions: tuple[int, int]  # from, to: offsets in the section
    has_augmentation: bool


@dataclass(slots=True)
class _State:
    """The row that is being built."""

    cfa: tuple[int, int] | None = (0, 0)
    registers: dict[int, RegisterRule] = field(default_factory=dict)


def _row(content: FrameContent, entry: Described, address: int) -> FrameRow:
    data = content.content
    cie = _cie(content, entry)
    first = _Program(data, cie, entry.address, None)
    first.run(*cie.instructions, address)
    program = _Program(data, cie, entry.address, first.state)
    start = entry.rest
    if cie.has_augmentation:
        length, start = _unsigned(data, start)
        start += length
    program.run(start, entry.fde.end, address)
    return FrameRow(program.state.cfa, program.state.registers, cie.return_register)


def _cie(content: FrameContent, entry: Described) -> _Cie:
    """version (1) | augmentation, a string | [4: address size, segment size] | code factor | data factor | return
    address register | [z: length, data] | instructions"""
    data, record = content.content, entry.cie
    version = data[record.body]
    end = data.index(b"\0", record.body + 1, record.end)
    augmentation = data[record.body + 1 : end]
    position = end + 1 + (2 if version >= 4 else 0)
    code_factor, position = _unsigned(data, position)
    data_factor, position = _signed(data, position)
    if version == 1:
        return_register, position = data[position], position + 1
    else:
        return_register, position = _unsigned(data, position)
    has_augmentation = augmentation.startswith(b"z")
    if has_augmentation:
        length, position = _unsigned(data, position)
        position += length
    return _Cie(code_factor, data_factor, return_register, (position, record.end), has_augmentation)


class _Program:
    """Runs the instructions of a CIE or an FDE up to an address. `initial` is what the CIE's left."""

    def __init__(self, data: bytes, cie: _Cie, start: int, initial: _State | None) -> None:
        self._data = data
        self._cie = cie
        self._location = start
        self._initial = initial
        self._at = 0
        self._stack: list[_State] = []
        self.state = _State() if initial is None else _copy(initial)

    def run(self, start: int, end: int, address: int) -> None:
        """Until the next row begins behind `address`; what goes on to it changes nothing else."""
        self._at = start
        while self._at < end and self._location <= address:
            self._step()

    def _step(self) -> None:
        opcode = self._data[self._at]
        self._at += 1
        operand = opcode & 0x3F
        match opcode >> 6:  # 1 advance_loc, 2 offset, 3 restore: with an operand in the low six bits
            case 1:
                self._location += operand * self._cie.code_factor
            case 2:
                self.state.registers[operand] = Saved(self._unsigned() * self._cie.data_factor)
            case 3:
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
        register, offset = self.state.cfa or (-1, 0)
        match opcode:
            case 0x0C:  # def_cfa
                self.state.cfa = self._unsigned(), self._unsigned()
            case 0x0D:  # def_cfa_register
                self.state.cfa = self._unsigned(), offset
            case 0x0E:  # def_cfa_offset
                self.state.cfa = register, self._unsigned()
            case 0x12:  # def_cfa_sf
                self.state.cfa = self._unsigned(), self._signed() * self._cie.data_factor
            case 0x13:  # def_cfa_offset_sf
                self.state.cfa = register, self._signed() * self._cie.data_factor
            case _:  # def_cfa_expression
                self._take(self._unsigned())
                self.state.cfa = None

    def _remember_or_restore(self, opcode: int) -> None:
        if opcode == 0x0A:  # remember_state
            self._stack.append(_copy(self.state))
        elif self._stack:  # restore_state
            self.state = self._stack.pop()

    def _register_rule(self, opcode: int) -> None:
        if opcode in _IGNORED:
            if opcode == 0x2E:
                self._unsigned()
            return
        register, rules = self._unsigned(), self.state.registers
        match opcode:
            case 0x06:  # restore_extended
                self._restore(register)
            case 0x07:  # undefined
                rules[register] = Lost()
            case 0x08:  # same_value
                rules.pop(register, None)
            case 0x09:  # register
                rules[register] = Moved(self._unsigned())
            case 0x10 | 0x16:  # expression, val_expression
                self._take(self._unsigned())
                rules[register] = Unknown()
            case _:
                rules[register] = self._relative(opcode)

    def _relative(self, opcode: int) -> RegisterRule:
        """A rule with an offset from the CFA."""
        factor = self._cie.data_factor
        match opcode:
            case 0x05:  # offset_extended
                return Saved(self._unsigned() * factor)
            case 0x11:  # offset_extended_sf
                return Saved(self._signed() * factor)
            case 0x2F:  # GNU_negative_offset_extended
                return Saved(-self._unsigned() * factor)
            case 0x14:  # val_offset
                return Value(self._unsigned() * factor)
            case 0x15:  # val_offset_sf
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
        value, self._at = _unsigned(self._data, self._at)
        return value

    def _signed(self) -> int:
        value, self._at = _signed(self._data, self._at)
        return value


_ADVANCES: Final = {0x02: 1, 0x03: 2, 0x04: 4}  # DW_CFA_advance_loc1, 2, 4 -> bytes of their operand
# nop; arm64's negate_ra_state (signed addresses are told by their upper bits); GNU_args_size, which has an operand
_IGNORED: Final = frozenset({0x00, 0x2D, 0x2E})
_CFA_OPCODES: Final = frozenset({0x0C, 0x0D, 0x0E, 0x0F, 0x12, 0x13})
_STACK_OPCODES: Final = frozenset({0x0A, 0x0B})


def _copy(state: _State) -> _State:
    return replace(state, registers=dict(state.registers))


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    end = skip_leb128(data, position)
    value = 0
    for place, digit in enumerate(data[position:end]):
        value |= (digit & 0x7F) << 7 * place
    return value, end


def _signed(data: bytes, position: int) -> tuple[int, int]:
    value, end = _unsigned(data, position)
    bits = 7 * (end - position)
    return value - (1 << bits) if value >> bits - 1 & 1 else value, end
