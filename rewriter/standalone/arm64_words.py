"""arm64: addresses -> the words that hold how far away they are. Sections are of the Arm ARM, DDI 0487.

    31    26 25     0     31 30 29  28   24 23          5 4  0     31       22 21     10 9  5 4  0
   | 000101 | imm26 |    | op | immlo | 10000 |   immhi    | Rd |    | 1001000100 |  imm12  | Rn | Rd |

b: 128 MiB (C6.2.26). adr, op = 0: 1 MiB (C6.2.11); adrp, op = 1, of pages within 4 GiB (C6.2.12), and add (C6.2.5).
"""

from typing import Final

from kinst.rewriter.arch.arm64 import IMM21, IMM21_PAGE, IMM26
from kinst.rewriter.arch.patterns import distance
from kinst.rewriter.standalone.trampoline import ImmovableError

_B: Final = 0b000101 << 26
_ADR: Final = 0x1000_0000
_ADRP: Final = 0x9000_0000
_ADD: Final = 0x9100_0000
_MOVZ: Final = 0xD280_0000
_MOVK: Final = 0xF280_0000
_PAGE: Final = 4096


def word(value: int) -> bytes:
    """An instruction."""
    return value.to_bytes(4, "little")


def jump(at: int, target: int) -> bytes | None:
    """b; None if it does not reach."""
    bits = IMM26.placed(distance(at, target))
    return None if bits is None else word(_B | bits)


def address_of(register: int, at: int, target: int) -> bytes:
    """adr; or adrp, and add if it takes one, which are right wherever both are moved to by whole pages.

    Raises:
        ImmovableError: it is more than 4 GiB away.
    """
    near = IMM21.placed(distance(at, target))
    if near is not None:
        return word(_ADR | near | register)
    page, low = page_of(register, at, target), target % _PAGE
    return page + (word(_ADD | low << 10 | register << 5 | register) if low else b"")


def page_of(register: int, at: int, target: int) -> bytes:
    """adrp.

    Raises:
        ImmovableError: it is more than 4 GiB away.
    """
    bits = IMM21_PAGE.placed(distance(at & -_PAGE, target & -_PAGE))
    if bits is None:
        raise ImmovableError("it is more than 4 GiB from what it refers to")
    return word(_ADRP | bits | register)


def number(register: int, value: int) -> bytes:
    """movz, and movk of what else is not zero: 16 bits at a time (C6.2.226, C6.2.227)."""
    parts = [(half, value >> half * 16 & 0xFFFF) for half in range(4)]
    code = word(_MOVZ | parts[0][1] << 5 | register)
    return code + b"".join(word(_MOVK | half << 21 | part << 5 | register) for half, part in parts[1:] if part)
