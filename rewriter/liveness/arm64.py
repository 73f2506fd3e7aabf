"""arm64: words -> the general registers and flags that they read and write. Sections "C4.x" are of the Arm ARM.

Vector instructions other than loads and stores are left out: kernels and firmware hardly have any. So are writes of
system registers: some of them decide who sees the next exception.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.sweep import units_at
from kinst.rewriter.liveness.effects import Effects
from kinst.rewriter.liveness.words import Form, FormTable

_FLAGS: Final = 1 << 31  # NZCV; number 31 of a field is zr or sp, neither of which is ever dead
_FIELD: Final = (*(1 << number for number in range(31)), 0)

# C4.1.92 Data processing, immediate. Bits 30..29 of add and sub: op and S; of logical: and, orr, eor, ands.
_IMMEDIATE: Final = (
    Form("op:1 immlo:2 10000 immhi:19 Rd:5", "", "Rd"),  # adr, adrp
    Form("sf:1 op:1 0 100010 sh:1 imm12:12 Rn:5 Rd:5", "Rn", "Rd"),
    Form("sf:1 op:1 1 100010 sh:1 imm12:12 Rn:5 Rd:5", "Rn", "Rd flags"),
    Form("sf:1 11 100100 N:1 immr:6 imms:6 Rn:5 Rd:5", "Rn", "Rd flags"),
    Form("sf:1 op:2 100100 N:1 immr:6 imms:6 Rn:5 Rd:5", "Rn", "Rd"),
    Form("sf:1 11 100101 hw:2 imm16:16 Rd:5", "Rd", "Rd"),  # movk
    Form("sf:1 .0 100101 hw:2 imm16:16 Rd:5", "", "Rd"),
    Form("sf:1 01 100110 N:1 immr:6 imms:6 Rn:5 Rd:5", "Rn Rd", "Rd"),  # bfm
    Form("sf:1 .0 100110 N:1 immr:6 imms:6 Rn:5 Rd:5", "Rn", "Rd"),
    Form("sf:1 00 100111 N:1 0 Rm:5 imms:6 Rn:5 Rd:5", "Rn Rm", "Rd"),  # extr
)

# C4.1.93 Branches and system instructions. Their destinations are the business of the search.
_BRANCHES: Final = (
    Form("0 00101 imm26:26"),
    Form("1 00101 imm26:26", "", "x30"),
    Form("0101010 0 imm19:19 C:1 cond:4", "flags"),
    Form("sf:1 011010 op:1 imm19:19 Rt:5", "Rt"),
    Form("b5:1 011011 op:1 b40:5 imm14:14 Rt:5", "Rt"),
    Form("1101011 0001 11111 000000 Rn:5 00000", "Rn", "x30"),
    # Hints: paciasp, autiasp and their like, xpaclri, those of x17 and x16; all others have no operands.
    Form("11010101 00000 011 0010 0011 ... 11111", "x30", "x30"),
    Form("11010101 00000 011 0010 0000 111 11111", "x30", "x30"),
    Form("11010101 00000 011 0010 0001 ..0 11111", "x16 x17", "x17"),
    Form("11010101 00000 011 0010 0101 000 11111", "x16", "x16"),  # chkfeat
    Form("11010101 00000 011 0010 CRm:4 op2:3 11111"),
    Form("11010101 00000 011 0011 CRm:4 010 11111"),  # clrex
    Form("11010101 00000 011 0011 CRm:4 1.. 11111"),  # barriers
    Form("11010101 00000 011 0100 imm:4 op2:3 11111"),  # daifset, daifclr
    Form("11010101 00 0 01 op1:3 CRn:4 CRm:4 op2:3 Rt:5", "Rt"),  # tlbi, dc, ic, at
    Form("11010101 00 1 11 011 0100 0010 000 Rt:5", "flags", "Rt"),  # mrs nzcv
    Form("11010101 00 1 1. op1:3 CRn:4 CRm:4 op2:3 Rt:5", "", "Rt"),  # mrs
)

# C4.1.94 Loads and stores
_LOADS_AND_STORES: Final = (
    Form("11 011 0 00 imm19:19 Rt:5"),  # prfm
    Form("opc:2 011 0 00 imm19:19 Rt:5", "", "Rt"),
    Form("opc:2 011 1 00 imm19:19 Rt:5"),
    # Exclusives, then ordered ones and compare-and-swap (casp is left out).
    Form("size:2 001000 0 1 0 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", "Rn", "Rt"),
    Form("size:2 001000 0 0 0 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", "Rn Rt", "Rs"),
    Form("1 sz:1 001000 0 1 1 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", "Rn", "Rt Rt2"),
    Form("1 sz:1 001000 0 0 1 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", "Rn Rt Rt2", "Rs"),
    Form("size:2 001000 1 1 0 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", "Rn", "Rt"),
    Form("size:2 001000 1 0 0 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", "Rn Rt"),
    Form("size:2 001000 1 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5", "Rn Rt Rs", "Rs"),
    # Pairs of general and of vector registers; written back or not, the base is read.
    Form("opc:2 101 0 0 idx:2 1 imm7:7 Rt2:5 Rn:5 Rt:5", "Rn", "Rt Rt2"),
    Form("opc:2 101 0 0 idx:2 0 imm7:7 Rt2:5 Rn:5 Rt:5", "Rn Rt Rt2"),
    Form("opc:2 101 1 0 idx:2 L:1 imm7:7 Rt2:5 Rn:5 Rt:5", "Rn"),
    # One register: unsigned offset; unscaled, post, unprivileged, pre; register offset; atomics.
    Form("11 111 0 01 10 imm12:12 Rn:5 Rt:5", "Rn"),  # prfm
    Form("size:2 111 0 01 00 imm12:12 Rn:5 Rt:5", "Rn Rt"),
    Form("size:2 111 0 01 opc:2 imm12:12 Rn:5 Rt:5", "Rn", "Rt"),
    Form("size:2 111 1 01 opc:2 imm12:12 Rn:5 Rt:5", "Rn"),
    Form("11 111 0 00 10 0 imm9:9 idx:2 Rn:5 Rt:5", "Rn"),  # prfum
    Form("size:2 111 0 00 00 0 imm9:9 idx:2 Rn:5 Rt:5", "Rn Rt"),
    Form("size:2 111 0 00 opc:2 0 imm9:9 idx:2 Rn:5 Rt:5", "Rn", "Rt"),
    Form("size:2 111 1 00 opc:2 0 imm9:9 idx:2 Rn:5 Rt:5", "Rn"),
    Form("11 111 0 00 10 1 Rm:5 option:3 S:1 10 Rn:5 Rt:5", "Rn Rm"),  # prfm
    Form("size:2 111 0 00 00 1 Rm:5 option:3 S:1 10 Rn:5 Rt:5", "Rn Rm Rt"),
    Form("size:2 111 0 00 opc:2 1 Rm:5 option:3 S:1 10 Rn:5 Rt:5", "Rn Rm", "Rt"),
    Form("size:2 111 1 00 opc:2 1 Rm:5 option:3 S:1 10 Rn:5 Rt:5", "Rn Rm"),
    Form("size:2 111 0 00 A:1 R:1 1 Rs:5 0 opc:3 00 Rn:5 Rt:5", "Rn Rs", "Rt"),  # ldadd, ldclr, ldeor, ldset, ...
    Form("size:2 111 0 00 A:1 R:1 1 Rs:5 1 000 00 Rn:5 Rt:5", "Rn Rs", "Rt"),  # swp
    Form("size:2 111 0 00 1 0 1 11111 1 100 00 Rn:5 Rt:5", "Rn", "Rt"),  # ldapr
)

# C4.1.95 Data processing, register
_REGISTER: Final = (
    Form("sf:1 11 01010 shift:2 N:1 Rm:5 imm6:6 Rn:5 Rd:5", "Rn Rm", "Rd flags"),
    Form("sf:1 op:2 01010 shift:2 N:1 Rm:5 imm6:6 Rn:5 Rd:5", "Rn Rm", "Rd"),
    Form("sf:1 op:1 1 01011 -:3 Rm:5 imm6:6 Rn:5 Rd:5", "Rn Rm", "Rd flags"),
    Form("sf:1 op:1 0 01011 -:3 Rm:5 imm6:6 Rn:5 Rd:5", "Rn Rm", "Rd"),
    Form("sf:1 op:1 1 11010000 Rm:5 000000 Rn:5 Rd:5", "Rn Rm flags", "Rd flags"),  # adcs, sbcs
    Form("sf:1 op:1 0 11010000 Rm:5 000000 Rn:5 Rd:5", "Rn Rm flags", "Rd"),
    Form("sf:1 op:1 1 11010010 imm5:5 cond:4 1 0 Rn:5 0 nzcv:4", "Rn flags", "flags"),  # ccmp, ccmn
    Form("sf:1 op:1 1 11010010 Rm:5 cond:4 0 0 Rn:5 0 nzcv:4", "Rn Rm flags", "flags"),
    Form("sf:1 op:1 0 11010100 Rm:5 cond:4 0 op2:1 Rn:5 Rd:5", "Rn Rm flags", "Rd"),  # csel, csinc, csinv, csneg
    Form("sf:1 0 0 11010110 Rm:5 opcode:6 Rn:5 Rd:5", "Rn Rm", "Rd"),
    Form("sf:1 1 0 11010110 00000 opcode:6 Rn:5 Rd:5", "Rn", "Rd"),
    Form("1 1 0 11010110 00001 opcode:6 Rn:5 Rd:5", "Rn Rd", "Rd"),  # pacia, autia, xpaci, ...
    Form("sf:1 00 11011 op31:3 Rm:5 o0:1 Ra:5 Rn:5 Rd:5", "Rn Rm Ra", "Rd"),
)

_TABLE: Final = FormTable(
    (*_IMMEDIATE, *_BRANCHES, *_LOADS_AND_STORES, *_REGISTER),
    32,
    ((20, 12),),
    {5: _FIELD},
    {"flags": _FLAGS, "x16": 1 << 16, "x17": 1 << 17, "x30": 1 << 30},
)


class Arm64Effector:
    """The `Effector` of A64."""

    @property
    def flags(self) -> Mapping[str, int]:
        """All four are written together."""
        return MappingProxyType({"nzcv": _FLAGS})

    @property
    def held(self) -> int:
        """x18, the platform's, and the frame pointer."""
        return 1 << 18 | 1 << 29

    def effects(self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]) -> Effects:
        """See `Effector.effects`."""
        return _TABLE.effects(units_at(code, offsets, 4))


EFFECTOR: Final = Arm64Effector()
