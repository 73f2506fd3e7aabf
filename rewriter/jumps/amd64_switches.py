"""amd64: jumps by a register -> those by a whole pointer from memory, and those by a switch's table of distances.

    mov    8(%rdi), %rax          lea    table(%rip), %rdx
    ...                           movslq (%rdx, %rax, 4), %rax
    jmp    *%rax                  add    %rdx, %rax            or lea (%rdx, %rax), %rax
                                  jmp    *%rax

Other instructions may be between these, branches too, but nothing leads there, and no call.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from kinst.rewriter.arch.amd64_decode import Encoding, decode, displacements
from kinst.rewriter.arch.amd64_opcodes import LEA, Prefix
from kinst.rewriter.jumps.references import Jumps
from kinst.rewriter.liveness.effects import EVERYTHING, Effects, effector
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.columns import unique
from kinst.targets.values import dataclass

_BACK: Final = 16  # instructions within which all of it is
_LOAD, _LOAD_SIGNED, _SUMS = 0x8B, 0x63, (0x01, 0x03)
_REGISTER_FORM: Final = 0xC0
_HAS_SIB: Final = 4
_NO_BASE: Final = 5
_BY_4: Final = 2 << 6  # of SIB: the index times 4
_UNPLAIN: Final = Prefix.SEGMENT | Prefix.ADDRESS
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class _Registers:
    """The registers in an instruction's operands, by number."""

    rm: int
    reg: int
    base: int
    index: int


class Switches:
    """The instructions around the indirect jumps of a region."""

    def __init__(self, jumps: Jumps) -> None:
        near = jumps.rows[:, None] - np.arange(_BACK + 1)
        self._jumps, self._rows = jumps, unique(np.maximum(near, 0))
        offsets, sizes = jumps.offsets[self._rows], jumps.sizes[self._rows]
        self._encoding: Encoding = decode(jumps.code, offsets)
        self._effects: Effects = effector(AMD64).effects(jumps.code, offsets, sizes)

    def tables(self, jump: int) -> list[int] | None:
        """The addresses of the tables through which a jump goes; none if it goes to a pointer loaded from memory; None:
        unknown.

        `jump` is the row of a jump through a register.
        """
        register = self._operands(jump).rm
        row = self._definition(jump, register)
        if row == _NONE:
            return None
        if self._opcode(row) == _LOAD and self._is_memory(row):
            return []
        found = [table for value, base in self._sums(row) for table in self._table(row, value, base)]
        return found or None

    def _sums(self, row: int) -> Iterator[tuple[int, int]]:
        """Pairs of registers that are added, in both orders: either may be the base."""
        operands, opcode = self._operands(row), self._opcode(row)
        if opcode in _SUMS and not self._is_memory(row):
            yield from ((operands.rm, operands.reg), (operands.reg, operands.rm))
        # SIB with scale 1: base + index.
        if opcode == LEA and self._is_sum(row) and self._sib(row) < 1 << 6:
            yield from ((operands.base, operands.index), (operands.index, operands.base))

    def _table(self, row: int, value: int, base: int) -> Iterator[int]:
        """The address of the table, if `value` is loaded from one at `base` that holds signed 32-bit distances."""
        load, start = self._definition(row, value), self._definition(row, base)
        # The base must be set before the load, or the table's address would be another register's.
        if _NONE in (load, start) or start >= load:
            return
        is_load = self._opcode(load) == _LOAD_SIGNED and self._is_sum(load)
        if not is_load or self._sib(load) & 0xC0 != _BY_4 or self._operands(load).base != base:
            return
        # ModRM with mod 00, r/m 101: RIP-relative.
        if self._opcode(start) == LEA and self._modrm(start) & 0xC7 == 5:
            at = self._encoding.modrm_at[self._at(start)] + 1
            end = int(self._jumps.offsets[start]) + int(self._jumps.sizes[start])
            yield self._jumps.base + end + int(displacements(self._jumps.code, np.array([at]), 4)[0])

    def _definition(self, row: int, register: int) -> int:
        """The row that wrote the whole 64-bit register; `_NONE` if that is unknown."""
        for before in range(row - 1, max(row - 1 - _BACK, -1), -1):
            # A branch target between the two, or a call, could bring another value.
            if not self._jumps.leads_on[before] or before < self._rows[0]:
                return _NONE
            at = self._at(before)
            # Without a row, or with effects unknown, nothing can be said about the register.
            if self._rows[at] != before or self._effects.reads[at] == EVERYTHING:
                return _NONE
            if self._effects.writes[at] >> register & 1:
                prefixes = int(self._encoding.prefixes[at])
                # A 32-bit write would zero-extend, a 16-bit one keep the rest: neither makes a 64-bit pointer.
                return before if prefixes & Prefix.REX_W and not prefixes & _UNPLAIN else _NONE
        return _NONE

    def _at(self, row: int) -> int:
        return int(np.searchsorted(self._rows, row))

    def _opcode(self, row: int) -> int:
        return int(self._encoding.opcode[self._at(row)])

    def _modrm(self, row: int) -> int:
        return int(self._encoding.modrm[self._at(row)])

    def _sib(self, row: int) -> int:
        return int(self._jumps.code[self._encoding.modrm_at[self._at(row)] + 1])

    def _is_sum(self, row: int) -> bool:
        """Whether the operand is base + index, without a displacement."""
        return self._modrm(row) & 0xC7 == _HAS_SIB and self._sib(row) & 7 != _NO_BASE

    def _is_memory(self, row: int) -> bool:
        return self._modrm(row) < _REGISTER_FORM

    def _operands(self, row: int) -> _Registers:
        prefixes, modrm, sib = int(self._encoding.prefixes[self._at(row)]), self._modrm(row), self._sib(row)
        b, x, r = (8 * bool(prefixes & one) for one in (Prefix.REX_B, Prefix.REX_X, Prefix.REX_R))
        return _Registers(modrm & 7 | b, modrm >> 3 & 7 | r, sib & 7 | b, sib >> 3 & 7 | x)
