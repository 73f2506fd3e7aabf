"""riscv64: instructions of 2 and 4 bytes -> the general registers that they read and write. There are no flags.

Chapters are those of `kinst.rewriter.arch.riscv64`. Accesses to CSRs are left out: firmware tries them under a trap
handler of its own, which takes arguments in registers (OpenSBI: sbi_expected_trap). So is vector and floating-point
arithmetic.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.sweep import units_at
from kinst.rewriter.liveness.effects import Effects
from kinst.rewriter.liveness.words import Form, FormTable

_FIELD: Final = (0, *(1 << number for number in range(1, 32)))  # x0 is never dead
_SHORT_FIELD: Final = tuple(1 << number for number in range(8, 16))  # of most compressed instructions
_NUMBERS: Final = {5: _FIELD, 3: _SHORT_FIELD}

_LONG: Final = FormTable(
    (
        Form("imm:20 rd:5 0.10111", "", "rd"),  # lui, auipc
        Form("imm:20 rd:5 1101111", "", "rd"),
        Form("imm:12 rs1:5 000 rd:5 1100111", "rs1", "rd"),
        Form("imm:7 rs2:5 rs1:5 00. imm:5 1100011", "rs1 rs2"),
        Form("imm:7 rs2:5 rs1:5 1.. imm:5 1100011", "rs1 rs2"),
        Form("imm:12 rs1:5 111 rd:5 0000011", "everything"),
        Form("imm:12 rs1:5 width:3 rd:5 0000011", "rs1", "rd"),
        Form("imm:7 rs2:5 rs1:5 0.. imm:5 0100011", "rs1 rs2"),
        Form("imm:12 rs1:5 01. rd:5 0000111", "rs1"),  # flw, fld
        Form("imm:7 rs2:5 rs1:5 01. imm:5 0100111", "rs1"),  # fsw, fsd
        Form("imm:12 rs1:5 op:3 rd:5 0010011", "rs1", "rd"),
        Form("imm:12 rs1:5 .01 rd:5 0011011", "rs1", "rd"),
        Form("imm:12 rs1:5 000 rd:5 0011011", "rs1", "rd"),
        Form("funct7:7 rs2:5 rs1:5 op:3 rd:5 011.011", "rs1 rs2", "rd"),  # op, op-32
        Form("imm:12 rs1:5 00. rd:5 0001111"),  # fence, fence.i
        Form("00010 aq:1 rl:1 00000 rs1:5 01. rd:5 0101111", "rs1", "rd"),  # lr
        Form("funct5:5 aq:1 rl:1 rs2:5 rs1:5 01. rd:5 0101111", "rs1 rs2", "rd"),
    ),
    32,
    ((0, 7), (12, 3), (7, 5)),
    _NUMBERS,
    {},
)
_COMPRESSED: Final = FormTable(
    (
        Form("000 imm:8 rd:3 00", "sp", "rd"),  # c.addi4spn
        Form("001 imm:3 rs1:3 imm:2 rd:3 00", "rs1"),  # c.fld
        Form("01. imm:3 rs1:3 imm:2 rd:3 00", "rs1", "rd"),  # c.lw, c.ld
        Form("101 imm:3 rs1:3 imm:2 rs2:3 00", "rs1"),  # c.fsd
        Form("11. imm:3 rs1:3 imm:2 rs2:3 00", "rs1 rs2"),
        Form("00. imm:1 rd:5 imm:5 01", "rd", "rd"),  # c.addi, c.addiw
        Form("010 imm:1 rd:5 imm:5 01", "", "rd"),  # c.li
        Form("011 imm:1 00010 imm:5 01", "sp", "sp"),
        Form("011 0 00 n:2 1 00000 01"),  # c.mop
        Form("011 imm:1 rd:5 imm:5 01", "", "rd"),  # c.lui
        Form("100 imm:1 0. rd:3 imm:5 01", "rd", "rd"),  # c.srli, c.srai
        Form("100 imm:1 10 rd:3 imm:5 01", "rd", "rd"),  # c.andi
        Form("100 0 11 rd:3 .. rs2:3 01", "rd rs2", "rd"),  # c.sub, c.xor, c.or, c.and
        Form("100 1 11 rd:3 0. rs2:3 01", "rd rs2", "rd"),  # c.subw, c.addw
        Form("101 imm:11 01"),  # c.j
        Form("11. imm:3 rs1:3 imm:5 01", "rs1"),  # c.beqz, c.bnez
        Form("000 imm:1 rd:5 imm:5 10", "rd", "rd"),  # c.slli
        Form("001 imm:1 rd:5 imm:5 10", "sp"),  # c.fldsp
        Form("01. imm:1 rd:5 imm:5 10", "sp", "rd"),  # c.lwsp, c.ldsp
        Form("100 1 00000 00000 10", "everything"),  # c.ebreak
        Form("100 0 rs1:5 00000 10", "rs1"),  # c.jr
        Form("100 1 rs1:5 00000 10", "rs1", "ra"),  # c.jalr
        Form("100 0 rd:5 rs2:5 10", "rs2", "rd"),  # c.mv
        Form("100 1 rd:5 rs2:5 10", "rd rs2", "rd"),  # c.add
        Form("101 imm:6 rs2:5 10", "sp"),  # c.fsdsp
        Form("11. imm:6 rs2:5 10", "sp rs2"),  # c.swsp, c.sdsp
    ),
    16,
    ((0, 16),),
    _NUMBERS,
    {"ra": 1 << 1, "sp": 1 << 2},
)


class Riscv64Effector:
    """The `Effector` of RV64GC."""

    @property
    def flags(self) -> Mapping[str, int]:
        """None."""
        return MappingProxyType({})

    @property
    def held(self) -> int:
        """zero, sp, gp, tp, and s0, the frame pointer."""
        return 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8

    def effects(self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]) -> Effects:
        """See `Effector.effects`."""
        words = units_at(code, offsets, 2)
        is_long = sizes == 4
        words[is_long] |= units_at(code, offsets[is_long] + 2, 2) << np.uint32(16)
        found = Effects(np.empty(len(words), np.uint32), np.empty(len(words), np.uint32))
        for table, rows in ((_LONG, np.flatnonzero(is_long)), (_COMPRESSED, np.flatnonzero(~is_long))):
            part = table.effects(words[rows])
            found.reads[rows], found.writes[rows] = part.reads, part.writes
        return found


EFFECTOR: Final = Riscv64Effector()
