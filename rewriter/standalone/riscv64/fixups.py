"""riscv64: addresses and numbers in code whose place is not known yet, in bulk. Chapters: unprivileged manual.

 31      12 11 7 6     0     31    20 19 15 14 12 11 7 6     0
| imm31:12 | rd | 0010111 | | imm11:0 | rs1 | 000 | rd | 0010011 |    auipc and addi: any address within 2 GiB

 31    20 19 15 14 12 11 7 6     0
| imm11:0 | rs1 | 000 | rd | 1100111 |    jalr
"""

from functools import cache
from typing import Final

import numpy as np

from kinst.rewriter.arch.patterns import Immediate
from kinst.rewriter.arch.riscv64 import IMM_CJ, IMM_I, IMM_J, IMM_U
from kinst.rewriter.standalone.code.parts import (
    HERE,
    NEXT,
    TARGET,
    Addresses,
    Encoding,
    Filled,
    Fixup,
    Numbers,
    Parts,
    as_bytes,
    distances,
)
from kinst.rewriter.standalone.code.word_encodings import near
from kinst.rewriter.standalone.riscv64.words import JAL
from kinst.targets.arch.riscv64 import RA

_C_J: Final = 0xA001
_AUIPC: Final = 0x17
_ADDI: Final = 0x13
_ADDIW: Final = 0x1B
_LUI: Final = 0x37
JALR: Final = 0x67
# Registers of far jumps. A jalr through x1, x5 or x7 needs no landing pad at its target where Zicfilp is enabled.
_FAR: Final = (7, 5, RA)
JUMPS_BY: Final = sum(1 << register for register in _FAR)
_TOO_FAR: Final = "it is more than 2 GiB from what it refers to"


@cache
def over_jump(layout: Immediate, size: int) -> Encoding:
    """The operand, a branch, over the jump after it."""

    def fill(at: Addresses, value: Addresses, operand: Numbers) -> Filled:
        code, fits = _J.fill(at + np.uint64(size), value, np.full(len(at), JAL))
        return np.hstack([as_bytes(operand | layout.bits_of(size + 4), size), code]), fits

    return Encoding(size + 4, fill)


def _pair(upper: Numbers, lower: Numbers, away: Numbers) -> Filled:
    """Two instructions that add up to a 32-bit number: the low 12 bits are signed, so the upper part is rounded to the
    nearest."""
    low = (away & 0xFFF) - ((away & 0x800) << 1)
    bits = IMM_U.bits_of(away - low)
    words = (upper | bits, lower | IMM_I.bits_of(low))
    return np.hstack([as_bytes(word, 4) for word in words]), IMM_U.of(bits) == away - low


def _address(at: Addresses, value: Addresses, register: Numbers) -> Filled:
    lower = _ADDI | register << 15 | register << 7
    return _pair(_AUIPC | register << 7, lower, distances(at, value))


def _displaced(at: Addresses, value: Addresses, word: Numbers) -> Filled:
    return _address(at, value + IMM_U.of(word).view(np.uint64), word >> 7 & 31)


def _far_jump(at: Addresses, value: Addresses, register: Numbers) -> Filled:
    return _pair(_AUIPC | register << 7, JALR | register << 15, distances(at, value))


def _number(_at: Addresses, value: Addresses, register: Numbers) -> Filled:
    lower = _ADDIW | register << 15 | register << 7
    return _pair(_LUI | register << 7, lower, value.view(np.int64))


def _small_number(_at: Addresses, value: Addresses, register: Numbers) -> Filled:
    number = value.view(np.int64)
    return as_bytes(_ADDI | register << 7 | IMM_I.bits_of(number), 4), number >> 11 == 0


_J, _C_J_ENCODING, _FAR_JUMP = near(IMM_J), near(IMM_CJ, 2), Encoding(8, _far_jump)
_LA, _DISPLACED, _LI, _LI_SMALL = (
    Encoding(8, _address),
    Encoding(8, _displaced),
    Encoding(8, _number),
    Encoding(4, _small_number),
)


def address_fixup(register: int, value: str) -> Fixup:
    """What an auipc at another address computes."""
    return Fixup(_LA, value, register, _TOO_FAR)


def displaced_auipc(word: int) -> Fixup:
    """auipc of somewhere else."""
    return Fixup(_DISPLACED, HERE, word, _TOO_FAR)


def number_fixup(register: int, value: str) -> Fixup:
    """ra or the like, as a call at the original address sets it; nothing if it is zero."""
    return Fixup(_LI_SMALL, value, register, (Fixup(_LI, value, register, "it is not a 31-bit number"),))


def linked(register: int) -> Parts:
    """c.j, or the reason why it does not reach."""
    return (address_fixup(register, NEXT),) if register else ()


def short_jump(value: str, why: str) -> Parts:
    """j; else auipc and jalr through a dead register, or the reason why there is none."""
    return (Fixup(_C_J_ENCODING, value, _C_J, why),)


def any_jump(value: str, dead: int, why: str) -> Parts:
    """j; else auipc and jalr by one of the dead registers, or the reason why there is none."""
    return (Fixup(_J, value, JAL, _far(value, dead, why)),)


def _far(value: str, dead: int, why: str) -> Parts | str:
    register = next((number for number in _FAR if dead >> number & 1), None)
    return why if register is None else (Fixup(_FAR_JUMP, value, register, _TOO_FAR),)


def branch(layout: Immediate, word: int, opposite: int, size: int, dead: int, why: str) -> Parts:
    """The branch to its target; else the opposite branch over a jump; at last over a far jump."""
    bare = word ^ opposite
    leap = _far(TARGET, dead, why)
    far = leap if isinstance(leap, str) else ((bare | layout.bits_of(size + 8)).to_bytes(size, "little"), *leap)
    jump = Fixup(over_jump(layout, size), TARGET, bare, far)
    return (Fixup(near(layout, size), TARGET, word, (jump,)),)
