"""arm64: addresses -> the words that hold the distance to them. Sections are of the Arm ARM, DDI 0487.

    31    26 25     0     31 30 29  28   24 23          5 4  0     31       22 21     10 9  5 4  0
   | 000101 | imm26 |    | op | immlo | 10000 |   immhi    | Rd |    | 1001000100 |  imm12  | Rn | Rd |

b: 128 MiB (C6.2.26). adr, op = 0: 1 MiB (C6.2.11); adrp, op = 1, of pages within 4 GiB (C6.2.12), and add (C6.2.5).
"""

from typing import Final

from kinst.rewriter.arch.arm64 import IMM21, IMM21_PAGE, IMM26
from kinst.rewriter.arch.patterns import distance
from kinst.rewriter.standalone.code.trampoline import ImmovableError

B: Final = 0b000101 << 26
ADR: Final = 0x1000_0000
ADRP: Final = 0x9000_0000
ADD: Final = 0x9100_0000
MOVZ: Final = 0xD280_0000
MOVK: Final = 0xF280_0000
PAGE: Final = 4096
TOO_FAR: Final = "it is more than 4 GiB from what it refers to"


def word(value: int) -> bytes:
    """An instruction."""
    return value.to_bytes(4, "little")


def jump(at: int, target: int) -> bytes | None:
    """b; None if it does not reach."""
    bits = IMM26.placed(distance(at, target))
    return None if bits is None else word(B | bits)


def address_of(register: int, at: int, target: int) -> bytes:
    """adr; or adrp, and add if the low bits are not zero. Both stay right if code and target are moved together by
    whole pages.

    Raises:
        ImmovableError: it is more than 4 GiB away.
    """
    near = IMM21.placed(distance(at, target))
    if near is not None:
        return word(ADR | near | register)
    bits, low = IMM21_PAGE.placed(distance(at & -PAGE, target & -PAGE)), target % PAGE
    if bits is None:
        raise ImmovableError(TOO_FAR)
    return word(ADRP | bits | register) + (word(ADD | low << 10 | register << 5 | register) if low else b"")
