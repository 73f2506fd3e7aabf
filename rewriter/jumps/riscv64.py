"""riscv64: the addresses that instructions make: auipc or lui, and an addition to the same register.

The compiler may put others between the two. Where no addition is found, every address that one could make counts.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.references import Jumps

Addresses = NDArray[np.uint64]
_APART: Final = 12  # instructions within which the addition is looked for
_AUIPC, _LUI, _ADDI, _C_ADDI = 0x17, 0x37, 0x13, 0x01
# What may add to the register, or use it up: loads, stores, jumps.
_USES: Final = (0x03, 0x07, 0x13, 0x1B, 0x23, 0x27, 0x33, 0x67)


def references(code: NDArray[np.uint8], base: int, address: Addresses, size: NDArray[np.uint8]) -> list[Addresses]:
    """See `References`."""
    if not len(address):
        return []
    words = _words(code, (address - np.uint64(base)).view(np.int64), size)
    rows = np.flatnonzero((size == 4) & np.isin(words & 0x7F, (_AUIPC, _LUI)))
    register = words[rows] >> np.uint32(7) & np.uint32(31)
    pages = (words[rows].astype(np.int64) << 32 >> 44 << 12).view(np.uint64)
    pages = pages + np.where(words[rows] & 0x7F == _AUIPC, address[rows], np.uint64(0))
    found, is_used = [], np.zeros(len(rows), np.bool_)
    for distance in range(1, _APART + 1):
        near = np.minimum(rows + distance, len(words) - 1)
        adds, uses = _additions(words[near], size[near], register)
        found.append(pages[adds] + _immediate(words[near[adds]], size[near[adds]]))
        is_used |= uses
    # Any addi or load may follow: 12 signed bits around the page, in steps of an instruction's alignment.
    window = np.arange(-2048, 2048, 2, dtype=np.int64).view(np.uint64)
    return [*found, (pages[~is_used][:, None] + window).reshape(-1)]


def tables(jumps: Jumps) -> Sequence[Sequence[int] | None]:
    """See `Tables`: unknown, since each goes through a register."""
    return [None] * len(jumps.rows)


def _words(code: NDArray[np.uint8], offset: NDArray[np.int64], size: NDArray[np.uint8]) -> NDArray[np.uint32]:
    padded = np.append(code, np.zeros(4, np.uint8))
    every = np.ndarray((len(code) + 1,), "<u4", padded, strides=(1,))
    words = every[offset].astype(np.uint32)
    words[size == 2] &= 0xFFFF
    return words


def _additions(
    words: NDArray[np.uint32], size: NDArray[np.uint8], register: NDArray[np.uint32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which instructions add a constant to the register, and which use it in a known way."""
    is_long = size == 4
    reads = is_long & (words >> 15 & 31 == register)
    short = ~is_long & (words >> 7 & 31 == register)
    adds = reads & (words & 0x707F == _ADDI) | short & (words & 0xE003 == _C_ADDI)
    return adds, adds | reads & np.isin(words & 0x7F, _USES)


def _immediate(words: NDArray[np.uint32], size: NDArray[np.uint8]) -> Addresses:
    """The number that addi or c.addi adds."""
    wide = words.astype(np.int32) >> 20
    bits = (words >> 2 & 31 | (words >> 12 & 1) << 5).astype(np.int64)
    narrow = (bits ^ 32) - 32
    return np.where(size == 4, wide, narrow).astype(np.int64).view(np.uint64)
