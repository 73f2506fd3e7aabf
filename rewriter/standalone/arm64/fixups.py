"""arm64: addresses and numbers in code whose address is not known yet, in bulk. The encodings are drawn in `words`."""

from typing import Final

import numpy as np

from kinst.rewriter.arch.arm64 import IMM21, IMM21_PAGE, IMM26
from kinst.rewriter.standalone.arm64.words import ADD, ADR, ADRP, MOVK, MOVZ, PAGE, TOO_FAR, B
from kinst.rewriter.standalone.code.parts import Addresses, Encoding, Fill, Filled, Fixup, Numbers, as_bytes, distances
from kinst.rewriter.standalone.code.word_encodings import near

_TO_PAGE: Final = np.uint64((1 << 64) - PAGE)


def _page(at: Addresses, value: Addresses, register: Numbers) -> Filled:
    away = distances(at & _TO_PAGE, value & _TO_PAGE)
    bits = IMM21_PAGE.bits_of(away)
    return as_bytes(ADRP | bits | register, 4), IMM21_PAGE.of(bits) == away


def _far(at: Addresses, value: Addresses, register: Numbers) -> Filled:
    (page, fits), low = _page(at, value, register), value.view(np.int64) & PAGE - 1
    return np.hstack([page, as_bytes(ADD | low << 10 | register << 5 | register, 4)]), fits


def _number(halves: int) -> Fill:
    def fill(_at: Addresses, value: Addresses, register: Numbers) -> Filled:
        number = value.view(np.int64)
        words = (MOVZ | (number & 0xFFFF) << 5 | register, MOVK | 1 << 21 | (number >> 16 & 0xFFFF) << 5 | register)
        return np.hstack([as_bytes(one, 4) for one in words[:halves]]), number >> 16 * halves == 0

    return fill


_ADR, _ADRP, _FAR, _B = near(IMM21), Encoding(4, _page), Encoding(8, _far), near(IMM26)
_MOVZ, _MOVK = Encoding(4, _number(1)), Encoding(8, _number(2))


def page_fixup(register: int, value: str) -> Fixup:
    """adrp."""
    return Fixup(_ADRP, value, register, TOO_FAR)


def address_fixup(register: int, value: str) -> Fixup:
    """adr; else adrp and add, which stay right if image and trampolines are moved together by whole pages."""
    return Fixup(_ADR, value, ADR | register, (Fixup(_FAR, value, register, TOO_FAR),))


def number_fixup(register: int, value: str) -> Fixup:
    """movz, and movk for numbers of more than 16 bits."""
    return Fixup(_MOVZ, value, register, (Fixup(_MOVK, value, register, "it is not a 32-bit number"),))


def jump_fixup(value: str, why: str) -> Fixup:
    """b, or the reason why it does not reach."""
    return Fixup(_B, value, B, why)
