"""arm64: how instructions make addresses of code, and what they do with a register (see `Registers`).

    adr Xd, label      adrp Xd, page; add Xe, Xd, #low      adrp Xd, page; ldr Xe, [Xd, #low] of a slot

The sections of C4.1.94, Loads and stores, are told by bits 27 and 25 = 1, 0; Rn is their base.
"""

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.addresses.following import Made, Operands, held, joined_made, none_of, uses
from kinst.rewriter.addresses.pairs import pairs
from kinst.rewriter.arch.sweep import units_at
from kinst.rewriter.liveness.effects import EVERYTHING, Masks
from kinst.targets.arch.arm64 import ARM64, Kind
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.columns import is_one_of
from kinst.targets.functions.address_uses import Slots, UsesOf, Wanted
from kinst.targets.instruction import Flow, Instructions

_STACK: Final = 31
_SVE: Final = 0x0400_0000  # bits 28:25 = 0010
_LITERALS: Final = (
    *(Kind.LDR_LITERAL_W, Kind.LDR_LITERAL_X, Kind.LDRSW_LITERAL),
    *(Kind.LDR_LITERAL_S, Kind.LDR_LITERAL_D, Kind.LDR_LITERAL_Q),
)


class Arm64Registers:
    """The `Registers` of A64."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of arm64."""
        return ARM64

    def made(self, code: NDArray[np.uint8], address: int, found: Instructions, slots: Slots, wanted: Wanted) -> Made:
        """See `Registers.made`."""
        words = _words(code, (found.address - np.uint64(address)).view(np.int64))
        near = np.flatnonzero(found.kind == Kind.ADR)
        near = near[wanted(found.target[near])]
        plain = Made(near, _field(words[near], 0), found.target[near])
        return joined_made([plain, *_paged(words, found, slots, wanted)])

    def read(self, found: Instructions, wanted: Wanted) -> Made:
        """See `Registers.read`: literals."""
        rows = np.flatnonzero(is_one_of(found.kind, _LITERALS))
        rows = rows[wanted(found.target[rows])]
        return Made(rows, none_of(len(rows)), found.target[rows])

    def operands(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Operands:
        """See `Registers.operands`."""
        words = _words(code, offsets)
        base = np.where(_accesses(words), _field(words, 5), np.int8(-1))
        base[base == _STACK] = -1
        single = words & 0xFFC0_0000 == 0xF900_0000  # str x, [Xn, #imm]
        pair = words & 0xFE40_0000 == 0xA800_0000  # stp x, x
        stored = np.where(single | pair, _field(words, 0), np.int8(-1))
        jumps = is_one_of(words & 0xFFFF_FC1F, (0xD61F_0000, 0xD63F_0000))  # br, blr
        return Operands(base, _displacement(words), stored, np.where(jumps, _field(words, 5), np.int8(-1)))

    def may_write(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Masks:
        """See `Registers.may_write`: of vectors, by bits 28:25 (C4.1). A load or store may write its base back."""
        words = _words(code, offsets)
        is_access = words & 0x0E00_0000 == 0x0C00_0000
        is_simd = words & 0x0E00_0000 == 0x0E00_0000
        named = np.where(is_simd & ~_leaves_vectors(words), 0, np.where(is_access, _bit(words, 5), _bit(words, 0)))
        return np.where(is_access | is_simd | (words & 0x1E00_0000 == _SVE), named, EVERYTHING).astype(np.uint32)


USES: Final[UsesOf] = partial(uses, Arm64Registers())


def _words(code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint32]:
    return units_at(code, offsets, 4)


def _field(words: NDArray[np.uint32], low: int) -> NDArray[np.int8]:
    return (words >> np.uint32(low) & np.uint32(31)).astype(np.int8)


def _bit(words: NDArray[np.uint32], low: int) -> Masks:
    """Of the register in a field."""
    return np.uint32(1) << (words >> np.uint32(low) & np.uint32(31))


def _leaves_vectors(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Vector and floating-point instructions that may write a general register: conversions and fmov (C4.1.96.30, 31),
    smov and umov (C4.1.96.6)."""
    whole, fixed = words & 0x5F20_FC00 == 0x1E20_0000, words & 0x5F20_0000 == 0x1E00_0000
    found: NDArray[np.bool_] = whole | fixed | (words & 0xBFE0_EC00 == 0x0E00_2C00)
    return found


def _accesses(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Loads and stores with a base register: all of the group but literals (bits 29:27 = 011, 25:24 = 00)."""
    found: NDArray[np.bool_] = (words & 0x0A00_0000 == 0x0800_0000) & (words & 0x3B00_0000 != 0x1800_0000)
    return found


def _displacement(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Of ``[Xn, #imm12]``, which counts in the size of what is accessed; 0 of other forms.

      31  30 29  27 26 25 24 23 22 21      10 9  5 4  0
    | size  | 111 | V | 01 | opc  |  imm12  | Rn | Rt |    V = 1, size 00, opc 1x: 16 bytes
    """
    size = words >> np.uint32(30)
    is_quad = (words & 0x0480_0000 == 0x0480_0000) & (size == 0)
    scaled = (words >> np.uint32(10) & np.uint32(0xFFF)).astype(np.int64) << np.where(is_quad, 4, size).astype(np.int64)
    return np.where(words & 0x3B00_0000 == 0x3900_0000, scaled, 0)


def _paged(words: NDArray[np.uint32], found: Instructions, slots: Slots, wanted: Wanted) -> list[Made]:
    """What adrp begins: an address by add, and one by a load from a slot."""
    first = np.flatnonzero(found.kind == Kind.ADRP)

    def meets(row: NDArray[np.intp], register: NDArray[np.int8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        adds, loads = found.kind[row] == Kind.ADD_IMMEDIATE, words[row] & 0xFFC0_0000 == 0xF940_0000
        ends = (_field(words[row], 0) == register) | (found.flow[row] == Flow.CALL)
        return (adds | loads) & (_field(words[row], 5) == register), ends

    position, row = pairs(found, first, _field(words[first], 0), meets)
    page, word = found.target[first[position]], words[row]
    adds = found.kind[row] == Kind.ADD_IMMEDIATE
    low = (word >> np.uint32(10) & np.uint32(0xFFF)).astype(np.uint64)
    there = page + np.where(adds, low, low << np.uint64(3))
    whole = adds & (word & 0x8040_0000 == 0x8000_0000)
    whole[whole] = wanted(there[whole])
    added = Made(row[whole], _field(word[whole], 0), there[whole])
    loads, value = held(slots, np.flatnonzero(~adds), there[~adds], wanted)
    return [added, Made(row[loads], _field(word[loads], 0), value)]
