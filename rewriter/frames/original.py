"""The call frame information of an image -> the rules at any address, as states (DWARF 5, 6.4.2).

`kinst.targets.debuginfo.call_frames` answers for one address at a time and leaves expressions out. Here all rows of a
function are wanted, with everything that an unwinder would do: what is not understood is left out whole.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.frames.states import Building, How, Rule, State
from kinst.targets.columns import unique
from kinst.targets.errors import ImageError
from kinst.targets.functions.frames import Cie, FrameTable, frame_tables
from kinst.targets.image import Image
from kinst.targets.leb128 import leb, signed_leb
from kinst.targets.values import dataclass

_ADVANCES: Final = {0x02: 1, 0x03: 2, 0x04: 4}
_ARGS_SIZE: Final = 0x2E


@dataclass(frozen=True, slots=True)
class Common:
    """What functions have in common: the factors of their instructions, the return address's register, whether the
    frame is that of a signal, whether it is signed with the second key (arm64), and the instructions of all."""

    code_factor: int
    data_factor: int
    return_register: int
    is_signal: bool
    has_key_b: bool
    start: bytes
    has_data: bool  # z


class UnknownError(Exception):
    """An instruction that is not known."""


class OriginalFrames:
    """Rows of functions, in address order: of each its address, the number of its state, and of its `Common`. What no
    function covers has the number -1."""

    def __init__(self, image: Image) -> None:
        """Nothing but the addresses of functions is read."""
        self._found: list[tuple[int, int, FrameTable, int]] = []
        end = -1
        tables = frame_tables(image)
        rows = [
            (int(start), order, int(size), table, row)
            for order, table in enumerate(tables)
            for row, (start, size) in enumerate(zip(table.address.tolist(), table.size.tolist(), strict=True))
            if size
        ]
        for start, _, size, table, row in sorted(rows, key=lambda one: one[:3]):
            if start >= end:
                self._found.append((start, size, table, row))
                end = start + size
        self._starts = [one[0] for one in self._found]
        self._read: dict[tuple[int, int], Common] = {}
        self._begun: dict[Common, Building] = {}
        self.states: dict[State, int] = {}
        self.commons: dict[Common, int] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def rows_of(self, addresses: NDArray[np.uint64]) -> "Rows":
        """The rows of all functions that have one of these addresses, up to the last of these in each."""
        addresses = unique(addresses)
        chosen = np.searchsorted(np.array(self._starts, np.uint64), addresses, "right") - 1
        is_last = np.append(chosen[1:] != chosen[:-1], True) & (chosen >= 0)
        found: list[tuple[int, int, int, int]] = []
        for number, last in zip(chosen[is_last].tolist(), addresses[is_last].tolist(), strict=True):
            start, size, table, row = self._found[number]
            found += self._rows(number, table, row, min(last - start, size - 1))
        columns = np.array(found, object).reshape(-1, 4)
        return Rows(columns[:, 0].astype(np.uint64), *(columns[:, one].astype(np.int64) for one in (1, 2, 3)))

    def _rows(self, number: int, table: FrameTable, row: int, last: int) -> Iterable[tuple[int, int, int, int]]:
        """The rows of one function, and where they end; `last` is a distance from its start."""
        start, size, _, _ = self._found[number]
        try:
            common = self._common(table, int(table.cie[row]))
            at = int(table.rest[row])
            if common.has_data:
                length, at = leb(table.content, at)
                at += length
            program = _Program(common, table.content[at : int(table.end[row])], self._first(common), last)
            program.run()
        except (UnknownError, IndexError, ImageError):
            return [(start, -1, -1, number)]
        of_common, states = self.commons.setdefault(common, len(self.commons)), self.states
        # Rows of no length are those that an instruction was about to change.
        ends = [at for at, _ in program.rows[1:]] + [-1]
        found = [
            (start + at, states.setdefault(state, len(states)), of_common, number)
            for (at, state), end in zip(program.rows, ends, strict=True)
            if at != end
        ]
        return [*found, (start + min(program.end, size), -1, -1, -1)]

    def _common(self, table: FrameTable, at: int) -> Common:
        key = (id(table), at)
        if key not in self._read:
            self._read[key] = _common(table.content, table.cies[at])
        return self._read[key]

    def _first(self, common: Common) -> Building:
        if common not in self._begun:
            program = _Program(common, common.start, Building(), 0)
            program.run()
            self._begun[common] = program.state
        return self._begun[common]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows, ascending: from each address on, the number of the state, that of its `Common`, and the function's."""

    address: NDArray[np.uint64]
    state: NDArray[np.int64]
    common: NDArray[np.int64]
    function: NDArray[np.int64]

    def at(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The row of each address, -1 where there is none."""
        rows: NDArray[np.int64] = np.searchsorted(self.address, addresses, "right") - 1
        return np.where((rows >= 0) & (self.state[np.maximum(rows, 0)] >= 0), rows, -1) if len(self.address) else rows


def _common(data: bytes, cie: Cie) -> Common:
    """version (1) | augmentation, a string | [4: address size, segment size] | code factor | data factor | return
    address register | [z: length, data] | instructions"""
    version = data[cie.body]
    at = cie.body + 1 + len(cie.augmentation) + 1 + (2 if version >= 4 else 0)
    code_factor, at = leb(data, at)
    data_factor, at = signed_leb(data, at)
    return_register, at = (data[at], at + 1) if version == 1 else leb(data, at)
    has_data = cie.augmentation.startswith(b"z")
    if has_data:
        length, at = leb(data, at)
        at += length
    letters = (b"S" in cie.augmentation, b"B" in cie.augmentation)
    return Common(code_factor, data_factor, return_register, *letters, data[at : cie.end], has_data)


class _Program:
    """Runs instructions up to a distance from where the function begins. `rows` are those up to there, and `end` is
    where the last of them ends."""

    def __init__(self, common: Common, code: bytes, initial: Building, last: int) -> None:
        self._common, self._code, self._initial, self._last = common, code, initial, last
        self.end = 1 << 63
        self._at = self._location = 0
        self._stack: list[Building] = []
        self.state = initial.copy()
        self.rows: list[tuple[int, State]] = []

    def run(self) -> None:
        """Run what concerns them."""
        while self._at < len(self._code) and self._location <= self._last:
            opcode = self._code[self._at]
            self._at += 1
            operand = opcode & 0x3F
            match opcode & 0xC0:
                case 0x40:
                    self._advance(operand)
                case 0x80:
                    self.state.rules[operand] = How.SAVED, self._unsigned() * self._common.data_factor, b""
                case 0xC0:
                    self._restore(operand)
                case _:
                    self._extended(opcode)
        if self._location <= self._last:
            self.rows.append((self._location, self.state.done()))
        else:
            self.end = self._location

    def _advance(self, units: int) -> None:
        self.rows.append((self._location, self.state.done()))
        self._location += units * self._common.code_factor

    def _extended(self, opcode: int) -> None:
        if opcode in _ADVANCES:
            self._advance(int.from_bytes(self._take(_ADVANCES[opcode]), "little"))
        elif opcode in self.ACTIONS:
            self.ACTIONS[opcode](self)
        elif opcode in self.RULES:
            register = self._unsigned()
            self.state.rules[register] = self.RULES[opcode](self)
        else:
            raise UnknownError

    def _restore(self, register: int) -> None:
        rule = self._initial.rules.get(register)
        if rule is None:
            self.state.rules.pop(register, None)
        else:
            self.state.rules[register] = rule

    def _same(self) -> None:
        self.state.rules.pop(self._unsigned(), None)

    def _remember(self) -> None:
        self._stack.append(self.state.copy())

    def _recall(self) -> None:
        if not self._stack:
            raise UnknownError
        self.state = self._stack.pop()

    def _based(self) -> tuple[int, int]:
        """The register and the offset of the CFA, one of which changes."""
        if self.state.register < 0:
            raise UnknownError
        return self.state.register, self.state.offset

    def _new_register(self) -> None:
        self.state.define(self._unsigned(), self._based()[1])

    def _new_offset(self, offset: int) -> None:
        self.state.define(self._based()[0], offset)

    def _take(self, size: int) -> bytes:
        taken = self._code[self._at : self._at + size]
        if len(taken) < size:
            raise UnknownError
        self._at += size
        return taken

    def _block(self) -> bytes:
        return self._take(self._unsigned())

    def _unsigned(self) -> int:
        value, self._at = leb(self._code, self._at)
        return value

    def _signed(self) -> int:
        value, self._at = signed_leb(self._code, self._at)
        return value

    def _factored(self) -> int:
        return self._unsigned() * self._common.data_factor

    def _signed_factored(self) -> int:
        return self._signed() * self._common.data_factor

    ACTIONS: ClassVar[Mapping[int, Callable[[Any], object]]] = {
        0x00: lambda self: None,
        _ARGS_SIZE: _unsigned,
        0x2D: lambda self: self.state.sign(),  # AARCH64_negate_ra_state
        0x06: lambda self: self._restore(self._unsigned()),
        0x08: _same,
        0x0A: _remember,
        0x0B: _recall,
        0x0C: lambda self: self.state.define(self._unsigned(), self._unsigned()),
        0x0D: _new_register,
        0x0E: lambda self: self._new_offset(self._unsigned()),
        0x0F: lambda self: self.state.define_by(self._block()),
        0x12: lambda self: self.state.define(self._unsigned(), self._signed_factored()),
        0x13: lambda self: self._new_offset(self._signed_factored()),
    }
    RULES: ClassVar[Mapping[int, Callable[[Any], Rule]]] = {
        0x05: lambda self: (How.SAVED, self._factored(), b""),
        0x07: lambda self: (How.LOST, 0, b""),
        0x09: lambda self: (How.MOVED, self._unsigned(), b""),
        0x10: lambda self: (How.AT, 0, self._block()),
        0x11: lambda self: (How.SAVED, self._signed_factored(), b""),
        0x14: lambda self: (How.VALUE, self._factored(), b""),
        0x15: lambda self: (How.VALUE, self._signed_factored(), b""),
        0x16: lambda self: (How.GIVEN, 0, self._block()),
        0x2F: lambda self: (How.SAVED, -self._factored(), b""),  # GNU_negative_offset_extended
    }
