"""riscv64: how instructions make addresses of code, and what they do with a register (see `Registers`).

auipc rd, high; addi re, rd, low      auipc rd, high; ld re, low(rd) of a slot
"""

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.addresses.following import Made, Operands, held, joined_made, none_of, uses
from kinst.rewriter.addresses.pairs import pairs
from kinst.rewriter.arch.riscv64 import IMM_I, IMM_S, IMM_U
from kinst.rewriter.arch.sweep import units_at
from kinst.rewriter.liveness.effects import EVERYTHING, Masks
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.riscv64 import RISCV64, Kind
from kinst.targets.columns import is_one_of
from kinst.targets.functions.address_uses import Slots, UsesOf, Wanted
from kinst.targets.instruction import Flow, Instructions

_STACK: Final = 2
_LOAD, _LOAD_FLOAT, _STORE, _STORE_FLOAT, _ATOMIC = 0x03, 0x07, 0x23, 0x27, 0x2F  # vectors are among those of floats
_FLOAT, _VECTOR, _SYSTEM = 0x53, 0x57, 0x73
# What leaves general registers alone: loads and stores of floats and vectors, fused multiplications, Zvk.
_FLOATS: Final = (_LOAD_FLOAT, _STORE_FLOAT, 0x43, 0x47, 0x4B, 0x4F, 0x77)
_TO_GENERAL: Final = (2, 7)  # funct3 of vector instructions: OPMVV with vmv.x.s, vcpop and vfirst, and vsetvli
_ADDI, _LD = 0x0013, 0x3003  # opcode and funct3
_NO_REGISTER: Final = np.int8(-1)


class Riscv64Registers:
    """The `Registers` of RV64GCV."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of riscv64."""
        return RISCV64

    def made(self, code: NDArray[np.uint8], address: int, found: Instructions, slots: Slots, wanted: Wanted) -> Made:
        """See `Registers.made`."""
        words = _words(code, (found.address - np.uint64(address)).view(np.int64))
        first = np.flatnonzero(found.kind == Kind.AUIPC)
        high = IMM_U.of(words[first].astype(np.int64)).view(np.uint64)

        def meets(row: NDArray[np.intp], register: NDArray[np.int8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
            uses = is_one_of(words[row] & 0x707F, (_ADDI, _LD)) & (found.size[row] == 4)
            is_base = _field(words[row], 15) == register
            ends = (_field(words[row], 7) == register) | (found.flow[row] == Flow.CALL)
            return uses & is_base, ends

        position, row = pairs(found, first, _field(words[first], 7), meets)
        there = found.address[first[position]] + high[position] + IMM_I.of(words[row].astype(np.int64)).view(np.uint64)
        return joined_made(_pointed(words, row, there, slots, wanted))

    def read(self, found: Instructions, wanted: Wanted) -> Made:
        """See `Registers.read`: what auipc and a load after it read, as the dissector says."""
        rows = np.flatnonzero((found.flow == Flow.NEXT) & (found.target != 0) & (found.kind != Kind.AUIPC))
        rows = rows[wanted(found.target[rows])]
        return Made(rows, none_of(len(rows)), found.target[rows])

    def operands(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Operands:
        """See `Registers.operands`."""
        words = _words(code, offsets)
        is_long = words & 3 == 3
        opcode = np.where(is_long, words & 0x7F, 0)
        loads, stores = is_one_of(opcode, (_LOAD, _LOAD_FLOAT)), is_one_of(opcode, (_STORE, _STORE_FLOAT))
        short = _short_access(words, is_long)
        base = np.where(loads | stores | (opcode == _ATOMIC), _field(words, 15), _NO_REGISTER)
        base = np.where(short, _short_field(words, 7), base)
        base[base == _STACK] = -1
        signed = words.astype(np.int64)
        displacement = np.where(loads, IMM_I.of(signed), np.where(stores, IMM_S.of(signed), 0))
        displacement[is_one_of(opcode, (_LOAD_FLOAT, _STORE_FLOAT)) & _is_vector(words)] = 0

        return Operands(base, displacement, _stored(words, is_long), _jumped(words, is_long))

    def may_write(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Masks:
        """See `Registers.may_write`: rd, where it is a general register."""
        words = _words(code, offsets)
        rd = np.uint32(1) << (words >> np.uint32(7) & np.uint32(31))
        opcode, width = words & 0x7F, words >> np.uint32(12) & np.uint32(7)
        of_vectors = (opcode == _VECTOR) & ~is_one_of(width, _TO_GENERAL)
        named = np.where(is_one_of(opcode, _FLOATS) | of_vectors, 0, rd)
        is_csr = (opcode == _SYSTEM) & (width != 0)
        return np.where(is_one_of(opcode, (_FLOAT, _VECTOR, *_FLOATS)) | is_csr, named, EVERYTHING).astype(np.uint32)


USES: Final[UsesOf] = partial(uses, Riscv64Registers())


def _words(code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Of each instruction, with what is after it where it has two bytes."""
    return units_at(code, offsets, 2) | units_at(code, offsets + 2, 2) << np.uint32(16)


def _field(words: NDArray[np.uint32], low: int) -> NDArray[np.int8]:
    return (words >> np.uint32(low) & np.uint32(31)).astype(np.int8)


def _short_field(words: NDArray[np.uint32], low: int) -> NDArray[np.int8]:
    return (words >> np.uint32(low) & np.uint32(7)).astype(np.int8) + np.int8(8)


def _short_access(words: NDArray[np.uint32], is_long: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """c.lw, c.ld, c.fld and the stores: quadrant 0, all of funct3 but c.addi4spn and Zcb's, which has bytes."""
    found: NDArray[np.bool_] = ~is_long & (words & 3 == 0) & (words & 0xE000 != 0)
    return found


def _is_vector(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether a width is one of vectors, whose loads and stores have no displacement (V 1.0, 7.2)."""
    return is_one_of(words >> np.uint32(12) & np.uint32(7), (0, 5, 6, 7))


def _stored(words: NDArray[np.uint32], is_long: NDArray[np.bool_]) -> NDArray[np.int8]:
    """sd, c.sd, c.sdsp."""
    found = np.where(is_long & (words & 0x707F == 0x3023), _field(words, 20), _NO_REGISTER)
    found = np.where(~is_long & (words & 0xE003 == 0xE000), _short_field(words, 2), found)
    return np.where(~is_long & (words & 0xE003 == 0xE002), _field(words, 2), found)


def _jumped(words: NDArray[np.uint32], is_long: NDArray[np.bool_]) -> NDArray[np.int8]:
    """jalr, c.jr, c.jalr."""
    short = ~is_long & (words & 0xE07F == 0x8002) & (_field(words, 7) != 0)
    is_jump = short | (is_long & (words & 0x707F == 0x0067))
    return np.where(is_jump, np.where(short, _field(words, 7), _field(words, 15)), _NO_REGISTER)


def _pointed(
    words: NDArray[np.uint32], row: NDArray[np.intp], there: NDArray[np.uint64], slots: Slots, wanted: Wanted
) -> list[Made]:
    """By addi the address itself, by ld what the slot there holds."""
    adds = words[row] & 0x707F == _ADDI
    chosen = adds.copy()
    chosen[chosen] = wanted(there[chosen])
    loads, value = held(slots, np.flatnonzero(~adds), there[~adds], wanted)
    return [
        Made(row[chosen], _field(words[row[chosen]], 7), there[chosen]),
        Made(row[loads], _field(words[row[loads]], 7), value),
    ]
