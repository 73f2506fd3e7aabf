"""Instructions of riscv64 -> those that lead to another stack, and those that rely on the current one."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.sweep import units_at
from kinst.rewriter.liveness.effects import Effects
from kinst.targets.arch.riscv64 import FP, SP
from kinst.targets.columns import is_one_of

_SP: Final = np.uint32(1 << SP)


def stack_roles(
    code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8], effects: Effects
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """See `CodeGenerator.stack_roles`. A swap of sp with a system register does both."""
    words = units_at(code, offsets, 2)
    is_long = sizes == 4
    words[is_long] |= units_at(code, offsets[is_long] + 2, 2) << np.uint32(16)
    switches: NDArray[np.bool_] = np.where(is_long, _switches(words), _short_switches(words))
    return switches, effects.reads & effects.writes & _SP != 0


# Opcodes whose bits 11..7 are a general register that is written: load, op-imm, auipc, op-imm-32, amo, op, lui, op-32,
# jalr, jal, system.
_WRITES: Final = (0x03, 0x13, 0x17, 0x1B, 0x2F, 0x33, 0x37, 0x3B, 0x67, 0x6F, 0x73)
_RETURNS: Final = (0x1020_0073, 0x3020_0073, 0x7020_0073)  # sret, mret, mnret


def _switches(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """All writes of sp but addi and andi of sp, addi of s0, and add and sub of sp and a register, which stay on the
    stack."""
    opcode, rd, rs1 = words & 0x7F, words >> 7 & 31, words >> 15 & 31
    operation = words & 0xFE00_707F
    adds = (words & 0x707F == 0x13) & is_one_of(rs1, (SP, FP))
    aligns = (words & 0x707F == 0x7013) & (rs1 == SP)
    indexes = is_one_of(operation, (0x33, 0x4000_0033)) & (rs1 == SP)
    found: NDArray[np.bool_] = is_one_of(opcode, _WRITES) & (rd == SP) & ~adds & ~aligns & ~indexes
    return found | is_one_of(words, _RETURNS)


def _short_switches(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """c.addiw, c.li, c.slli, c.lwsp, c.ldsp, and c.mv other than from s0. c.lui of sp is c.addi16sp, which stays."""
    group, rd, rs2 = words & 0xE003, words >> 7 & 31, words >> 2 & 31
    writes = is_one_of(group, (0x2001, 0x4001, 0x0002, 0x4002, 0x6002))
    moves = (words & 0xF003 == 0x8002) & ~is_one_of(rs2, (0, FP))
    found: NDArray[np.bool_] = (rd == SP) & (writes | moves)
    return found
