"""amd64: instructions -> the general registers and flags that they read and write, by the table `amd64_forms`.

A write of 8 or 16 bits leaves the rest of the register, one of 32 clears it (SDM volume 1, 3.4.1.1).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_decode import Encoding, decode
from kinst.rewriter.arch.amd64_opcodes import HAS_MEMORY_OPERAND, Prefix, has
from kinst.rewriter.liveness import amd64_forms as forms
from kinst.rewriter.liveness.effects import EVERYTHING, Effects, Masks
from kinst.targets.arch.amd64 import RBP, RSP
from kinst.targets.columns import is_one_of

_BIT: Final = np.left_shift(np.uint32(1), np.arange(16, dtype=np.uint32))
_NO_BITS: Final = np.uint32(0)
# xor and sub of a register with itself give 0, whatever it held: the read is no dependency.
_CLEARING: Final = (0x29, 0x2B, 0x31, 0x33)
_REGISTER_FORM: Final = 0xC0


class Amd64Effector:
    """The `Effector` of 64-bit mode."""

    @property
    def flags(self) -> Mapping[str, int]:
        """The arithmetic ones."""
        return MappingProxyType({f"{name.lower()}f": bit for name, bit in forms.FLAGS.items()})

    @property
    def held(self) -> int:
        """The stack pointer and the frame pointer."""
        return 1 << RSP | 1 << RBP

    def effects(self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]) -> Effects:
        """See `Effector.effects`."""
        encoding = decode(code, offsets)
        row = forms.form_rows(encoding.opcode, encoding.modrm, encoding.prefixes)
        registers = _operands(encoding)
        is_register = (encoding.modrm >= _REGISTER_FORM) & HAS_MEMORY_OPERAND.take(encoding.opcode)
        reads = forms.READS.take(row) | forms.TESTS.take(row) | _address(code, encoding, ~is_register, row)
        sets = np.where(_is_shifted(code, encoding, offsets, sizes, row), forms.SETS.take(row), _NO_BITS)
        whole = np.where(has(encoding.prefixes, Prefix.NARROW), _NO_BITS, np.uint32(EVERYTHING))
        writes = forms.WRITES.take(row) & whole | sets
        for operand, number in enumerate(registers):
            there = is_register if forms.OPERANDS[operand] == "E" else True
            is_byte = forms.IS_BYTE[operand].take(row)
            read = forms.IS_READ[operand].take(row) & there & ~_clears(encoding, registers)
            written = forms.IS_WRITTEN[operand].take(row) & there & ~is_byte
            reads |= np.where(read, _BIT.take(number), _NO_BITS)
            # Without a REX prefix registers 4 to 7 are ah, ch, dh and bh. A REX without bits looks like none here: then
            # both read.
            reads |= np.where(read & is_byte & (number < 8), _BIT.take(number & 3), _NO_BITS)
            writes |= np.where(written, _BIT.take(number) & whole, _NO_BITS)
        unknown = row == 0
        reads[unknown], writes[unknown] = EVERYTHING, 0
        return Effects(reads, writes)


EFFECTOR: Final = Amd64Effector()


def _operands(encoding: Encoding) -> tuple[NDArray[np.intp], ...]:
    """The numbers of the registers that E, G and O would mean."""
    prefixes = encoding.prefixes
    extended = np.where(has(prefixes, Prefix.REX_B), 8, 0)
    rm = (encoding.modrm & 7) | extended
    reg = (encoding.modrm >> 3 & 7) | np.where(has(prefixes, Prefix.REX_R), 8, 0)
    return rm, reg, (encoding.opcode & 7) | extended


def _clears(encoding: Encoding, registers: tuple[NDArray[np.intp], ...]) -> NDArray[np.bool_]:
    """Which are ``xor r, r`` or ``sub r, r``."""
    same = (encoding.modrm >= _REGISTER_FORM) & (registers[0] == registers[1])
    found: NDArray[np.bool_] = same & is_one_of(encoding.opcode, _CLEARING)
    return found


def _is_shifted(
    code: NDArray[np.uint8],
    encoding: Encoding,
    offsets: NDArray[np.int64],
    sizes: NDArray[np.uint8],
    row: NDArray[np.uint16],
) -> NDArray[np.bool_]:
    """Which instructions write their flags: shifts by an immediate do unless the count, masked to 5 or 6 bits, is 0."""
    count = code.take(offsets + np.maximum(sizes, 1) - 1)
    bits = np.where(has(encoding.prefixes, Prefix.REX_W), 63, 31)
    found: NDArray[np.bool_] = ~forms.IS_COUNTED.take(row) | ((count & bits) != 0)
    return found


def _address(
    code: NDArray[np.uint8], encoding: Encoding, is_memory: NDArray[np.bool_], row: NDArray[np.uint16]
) -> Masks:
    """The base and the index of memory operands (SDM volume 2, tables 2-2 and 2-3)."""
    found = np.zeros(len(row), np.uint32)
    at = np.flatnonzero(is_memory & HAS_MEMORY_OPERAND.take(encoding.opcode) & forms.HAS_ADDRESS.take(row))
    modrm, prefixes, sib = encoding.modrm[at], encoding.prefixes[at], code.take(encoding.modrm_at[at] + 1)
    has_sib = (modrm & 7) == 4
    low = np.where(has_sib, sib & 7, modrm & 7)
    has_base = (low != 5) | (modrm >= 0x40)
    base = low | np.where(has(prefixes, Prefix.REX_B), 8, 0)
    index = (sib >> 3 & 7) | np.where(has(prefixes, Prefix.REX_X), 8, 0)
    found[at] = np.where(has_base, _BIT.take(base), _NO_BITS)
    found[at] |= np.where(has_sib & (index != RSP), _BIT.take(index), _NO_BITS)
    return found
