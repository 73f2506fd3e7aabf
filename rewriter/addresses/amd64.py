"""amd64: how instructions make addresses of code, and what they do with a register (see `Registers`).

48 8d modrm disp32            lea disp32(%rip), r      48 8b modrm disp32    mov slot(%rip), r
b8+r imm32, 48 c7 c0+r imm32  mov $imm32, r: in code that is not position-independent
"""

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.addresses.following import Made, Operands, held, joined_made, none_of, uses
from kinst.rewriter.arch.amd64_decode import Encoding, decode, displacements
from kinst.rewriter.arch.amd64_opcodes import HAS_MEMORY_OPERAND, LEA, MAP_0F, VECTOR, VEX_0F, Prefix, has
from kinst.rewriter.liveness.effects import EVERYTHING, Masks
from kinst.targets.arch.amd64 import AMD64, Kind
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.columns import is_one_of
from kinst.targets.functions.address_uses import Slots, UsesOf, Wanted
from kinst.targets.instruction import Flow, Instructions

_MOVE_FROM, _MOVE_TO, _GROUP5 = 0x8B, 0x89, 0xFF
_MOVQ: Final = 0x6E  # of the map 0f: a general register to a vector register, as two pointers are stored at once
_NUMBER: Final = range(0xB8, 0xC0)
_NUMBER_64: Final = 0xC7
_NO_ACCESS: Final = (LEA, MAP_0F | 0x0D, *range(MAP_0F | 0x18, (MAP_0F | 0x1F) + 1))  # and prefetch, hint nops
# vcvtsd2si and its like, vmovmskps, vmovd, kmov, vpextrw, vpmovmskb; then those of the maps 0f38 and 0f3a as well:
# vpextr, vpcmpistri, BMI; the short ones are of XOP.
_LEAVE_VECTORS: Final = (
    *(VEX_0F | last for last in (0x2C, 0x2D, 0x50, 0x7E, 0x93, 0xC5, 0xD7)),
    *(
        VECTOR | last
        for last in (1, 2, 0x10, 0x12, 0x14, 0x15, 0x16, 0x17, 0x2C, 0x2D, 0x61, 0x63, 0x78, 0x79, 0x7E, 0xC5)
    ),
    *range(VECTOR | 0xF0, (VECTOR | 0xF7) + 1),
)


class Amd64Registers:
    """The `Registers` of 64-bit mode."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of amd64."""
        return AMD64

    def made(self, code: NDArray[np.uint8], address: int, found: Instructions, slots: Slots, wanted: Wanted) -> Made:
        """See `Registers.made`."""
        offset = (found.address - np.uint64(address)).view(np.int64)
        parts = [
            _relative(code, address, found, offset, wanted),
            _loaded(code, found, offset, slots, wanted),
            _numbers(code, found, offset, wanted),
        ]
        return joined_made(parts)

    def read(self, found: Instructions, wanted: Wanted) -> Made:
        """See `Registers.read`: the dissector says where a RIP-relative operand is."""
        rows = np.flatnonzero((found.kind == Kind.RELATIVE) & (found.flow == Flow.NEXT) & (found.target != 0))
        rows = rows[wanted(found.target[rows])]
        return Made(rows, none_of(len(rows)), found.target[rows])

    def operands(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Operands:
        """See `Registers.operands`."""
        encoding = decode(code, offsets)
        opcode, modrm = encoding.opcode, encoding.modrm
        is_memory = (modrm < 0xC0) & HAS_MEMORY_OPERAND.take(opcode) & ~encoding.rip_relative
        base, displacement = _memory(code, encoding, is_memory & ~is_one_of(opcode, _NO_ACCESS))
        rm = (modrm & 7 | np.where(has(encoding.prefixes, Prefix.REX_B), 8, 0)).astype(np.int8)
        reg = (modrm >> 3 & 7 | np.where(has(encoding.prefixes, Prefix.REX_R), 8, 0)).astype(np.int8)
        stored = np.where((opcode == _MOVE_TO) & (modrm < 0xC0), reg, np.int8(-1))
        moved = is_one_of(opcode, (MAP_0F | _MOVQ, VEX_0F | _MOVQ)) & (modrm >= 0xC0)
        goes = (opcode == _GROUP5) & (modrm >= 0xC0) & is_one_of(modrm >> 3 & 7, (2, 4))
        return Operands(base, displacement, np.where(moved, rm, stored), np.where(goes, rm, np.int8(-1)))

    def may_write(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Masks:
        """See `Registers.may_write`: of VEX and EVEX only a few leave the vector registers."""
        encoding = decode(code, offsets)
        opcode = encoding.opcode
        compares = (opcode >> 4 == VECTOR >> 4 | 0xE) & ~_is_evex(code, encoding)  # cmpccxadd
        leaves = (opcode < VEX_0F) | is_one_of(opcode, _LEAVE_VECTORS) | compares
        return np.where(leaves, EVERYTHING, 0).astype(np.uint32)


USES: Final[UsesOf] = partial(uses, Amd64Registers())


def _registers(code: NDArray[np.uint8], offset: NDArray[np.int64], field: int) -> NDArray[np.int8]:
    """The register in a field of ModRM (`field`: 3 reg, 0 r/m) of instructions with a REX prefix first, or none."""
    encoding = decode(code, offset)
    bit = Prefix.REX_R if field else Prefix.REX_B
    return (encoding.modrm >> np.uint8(field) & 7 | np.where(has(encoding.prefixes, bit), 8, 0)).astype(np.int8)


def _relative(
    code: NDArray[np.uint8], address: int, found: Instructions, offset: NDArray[np.int64], wanted: Wanted
) -> Made:
    """``lea disp32(%rip)``, found by a search of the bytes: decoding every instruction takes long."""
    at = np.flatnonzero((code[1:-7] == LEA) & (code[2:-6] & 0xC7 == 0x05))  # of the REX prefix
    target = np.uint64(address) + (at + 7 + displacements(code, at + 3, 4)).view(np.uint64)
    chosen = wanted(target)
    at, target = at[chosen], target[chosen]
    row = np.minimum(np.searchsorted(offset, at), max(len(offset) - 1, 0))
    real = (offset[row] == at) & (found.size[row] == 7)
    row, at = row[real], at[real]
    return Made(row, _registers(code, at, 3), target[real])


def _loaded(
    code: NDArray[np.uint8], found: Instructions, offset: NDArray[np.int64], slots: Slots, wanted: Wanted
) -> Made:
    """``mov slot(%rip)``."""
    rows = np.flatnonzero((found.kind == Kind.RELATIVE) & (found.size == 7) & (found.target != 0))
    rows, value = held(slots, rows, found.target[rows], wanted)
    is_move = code.take(offset[rows] + 1) == _MOVE_FROM
    rows = rows[is_move]
    return Made(rows, _registers(code, offset[rows], 3), value[is_move])


def _numbers(code: NDArray[np.uint8], found: Instructions, offset: NDArray[np.int64], wanted: Wanted) -> Made:
    """``mov $imm32``."""
    size = is_one_of(found.size, (5, 6, 7))
    rows = np.flatnonzero(size & (found.flow == Flow.NEXT) & (found.kind == Kind.OTHER))
    at, length = offset[rows], found.size[rows].astype(np.int64)
    number = displacements(code, at + length - 4, 4)
    extended = np.where(length == 7, number, number & 0xFFFF_FFFF).view(np.uint64)
    chosen = wanted(extended)
    rows, at, extended = rows[chosen], at[chosen], extended[chosen]
    encoding = decode(code, at)
    short = is_one_of(encoding.opcode, _NUMBER)
    long = (encoding.opcode == _NUMBER_64) & (encoding.modrm >= 0xC0)
    low = np.where(short, encoding.opcode & 7, encoding.modrm & 7)
    register = (low | np.where(has(encoding.prefixes, Prefix.REX_B), 8, 0)).astype(np.int8)
    return Made(rows, register, extended).take(short | long)


def _memory(
    code: NDArray[np.uint8], encoding: Encoding, is_memory: NDArray[np.bool_]
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """The base of each memory operand and its displacement (SDM volume 2, tables 2-2 and 2-3)."""
    modrm, sib = encoding.modrm, code.take(encoding.modrm_at + 1)
    has_sib = (modrm & 7) == 4
    low = np.where(has_sib, sib & 7, modrm & 7)
    none = ~is_memory | (has_sib & (low == 5) & (modrm < 0x40))
    base = np.where(none, -1, low | np.where(_extends(code, encoding), 8, 0)).astype(np.int8)
    at = encoding.modrm_at + 1 + has_sib
    displacement = np.zeros(len(modrm), np.int64)
    for mod, size in ((1, 1), (2, 4)):
        rows = np.flatnonzero(modrm >> 6 == mod)
        displacement[rows] = displacements(code, at[rows], size)
    # EVEX scales disp8 by the size of the operand (SDM volume 2, "Compressed Displacement"), which is not known here.
    base[(modrm >> 6 == 1) & (encoding.opcode >= VECTOR) & _is_evex(code, encoding)] = -1
    return base, displacement


def _is_evex(code: NDArray[np.uint8], encoding: Encoding) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = code.take(np.maximum(encoding.modrm_at - 5, 0)) == 0x62
    return found


def _extends(code: NDArray[np.uint8], encoding: Encoding) -> NDArray[np.bool_]:
    """Whether the base is one of r8 to r15: REX.B, or the inverted bit of the first payload byte of VEX and EVEX."""
    at = encoding.modrm_at
    payload = np.where(_is_evex(code, encoding), code.take(np.maximum(at - 4, 0)), 0)
    is_long = code.take(np.maximum(at - 4, 0)) == 0xC4
    payload = np.where(is_long, code.take(np.maximum(at - 3, 0)), payload)
    is_vector = (encoding.opcode >= VECTOR) | ((encoding.opcode >= VEX_0F) & is_long)
    inverted: NDArray[np.bool_] = payload & 0x20 == 0
    return np.where(is_vector, inverted, has(encoding.prefixes, Prefix.REX_B))
