"""A load or store of arm64 -> the bytes that it accesses, from the address that was translated.

DDI 0487 C4.1.94, loads and stores. An instruction of several registers accesses them one after the other.
"""

from typing import Final

_ZVA_BLOCK: Final = 64  # by DCZID_EL0
_MULTIPLE_REGISTERS: Final = {0: 4, 2: 4, 4: 3, 6: 3, 7: 1, 8: 2, 10: 2}  # opcode, bits 15:12


def accessed(word: int, address: int) -> tuple[int, int]:
    """The address and the number of bytes that the instruction accesses from `address` on; one byte for what is neither
    load nor store.

     31 30 29  27 26 25 24 23 22 21          16 15    12 11   10 9   5 4   0
    +-----+------+--+-----+-----+--------------+--------+-------+-----+-----+
    |size |  op  | V| op  | opc |              |        |       | Rn  | Rt  |
    +-----+------+--+-----+-----+--------------+--------+-------+-----+-----+
    """
    if word & 0xFFFFFFE0 == 0xD50B7420:  # dc zva
        return address & -_ZVA_BLOCK, _ZVA_BLOCK
    match word >> 27 & 7:
        case 1:
            return address, _vectors(word) if word >> 26 & 1 else _exclusive(word)
        case 3:
            return address, _literal(word)
        case 5:
            return address, _pair(word)
        case 7:
            return address, _single(word)
    return address, 1


def _exclusive(word: int) -> int:
    """ldxr, stlr, ldar, casp and the like; o1 (bit 21) without o2 (bit 23) is a pair."""
    size = 1 << (word >> 30)
    return 2 * size if word >> 21 & 1 and not word >> 23 & 1 else size


def _vectors(word: int) -> int:
    """ld1 to ld4 and st1 to st4 of whole registers, or of one element of each."""
    if word >> 24 & 1:
        count = 1 + (word >> 21 & 1) + 2 * (word >> 13 & 1)
        scale, size = word >> 14 & 3, word >> 10 & 3
        match scale:
            case 2:
                return count << (3 if size & 1 else 2)
            case 3:  # ld1r and the like
                return count << size
        return count << scale
    return _MULTIPLE_REGISTERS.get(word >> 12 & 15, 1) * (16 if word >> 30 & 1 else 8)


def _literal(word: int) -> int:
    opc = word >> 30
    if word >> 26 & 1:
        return 4 << opc
    return 8 if opc == 1 else 4


def _pair(word: int) -> int:
    opc = word >> 30
    if word >> 26 & 1:
        return 8 << opc
    return 16 if opc == 2 else 8


def _single(word: int) -> int:
    size = word >> 30
    if word >> 26 & 1:
        size |= (word >> 23 & 1) << 2
    return 1 << size
