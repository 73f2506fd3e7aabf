"""riscv64: the instructions of 4 bytes that trampolines are made of -> those of 2 bytes that do the same.

Used only where the code itself has some: else the CPU may lack them ("C" 26.3, 26.5).

    15  13  12   11 7 6      2 1  0     15  13  12    11 7 6            2 1  0     15    12 11 7 6   2 1  0
   | 000 | imm5 | rd | imm4:0 | 01 |   | 011 | imm9 | 00010 | 4|6|8:7|5 | 01 |   | 100 .  | rd | rs2 | 10 |
     c.addi; 010: c.li                   c.addi16sp                                c.mv, c.add

    15  13  12   11 7 6        2 1  0     15  13 12       7 6   2 1  0
   | 011 | imm5 | rd | 4:3|8:6  | 10 |   | 111 | 5:3|8:6   | rs2 | 10 |
     c.ldsp                                c.sdsp
"""

from typing import Final

from kinst.rewriter.arch.patterns import Immediate
from kinst.rewriter.arch.riscv64 import IMM_CI, IMM_I, IMM_S
from kinst.targets.arch.riscv64 import SP

_ADDI16SP: Final = Immediate(((6, 1, 4), (2, 1, 5), (5, 1, 6), (3, 2, 7), (12, 1, 9)), 10)
# Unsigned: the sign bit is never set, so ten bits hold 9.
_LDSP: Final = Immediate(((5, 2, 3), (12, 1, 5), (2, 3, 6)), 10)
_SDSP: Final = Immediate(((10, 3, 3), (7, 3, 6)), 10)


def shortened(code: bytes) -> bytes:
    """The same instruction in 2 bytes, if there is one."""
    word = int.from_bytes(code, "little")
    short = _short(word, word >> 7 & 31, word >> 15 & 31, word >> 20 & 31) if len(code) == 4 else None
    return code if short is None else short.to_bytes(2, "little")


def _short(word: int, rd: int, rs1: int, rs2: int) -> int | None:
    match word & 0x707F:
        case 0x0013 if rd:
            return _addi(rd, rs1, IMM_I.of(word))
        case 0x3003 if rd and rs1 == SP:
            return _with(0x6002 | rd << 7, _LDSP, IMM_I.of(word))
        case 0x3023 if rs1 == SP:
            return _with(0xE002 | rs2 << 2, _SDSP, IMM_S.of(word))
        case 0x0033 if rd and rs2 and rd == rs1 and not word >> 25:
            return 0x9002 | rd << 7 | rs2 << 2
    return None


def _addi(rd: int, rs1: int, value: int) -> int | None:
    if not rs1:
        return _with(0x4001 | rd << 7, IMM_CI, value)
    if not value:
        return 0x8002 | rd << 7 | rs1 << 2
    if rd != rs1:
        return None
    short = _with(0x0001 | rd << 7, IMM_CI, value)
    return _with(0x6101, _ADDI16SP, value) if short is None and rd == SP else short


def _with(bare: int, layout: Immediate, value: int) -> int | None:
    bits = layout.placed(value)
    return None if bits is None else bare | bits
