"""amd64: the addresses that instructions make, by immediates, which come last, and by ``lea`` from RIP.

And the jumps that go to none of those: by a register, or by memory that a register leads to. What is in memory at a
fixed place, in a table or by itself, is stored there as a whole.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_decode import decode
from kinst.rewriter.arch.amd64_opcodes import Prefix, has

Addresses = NDArray[np.uint64]
_LEA: Final = 0x8D  # in 48 8d /r disp32, with ModRM 00 reg 101
_LEA_SIZE: Final = 6  # without a prefix


def references(code: NDArray[np.uint8], base: int, address: Addresses, size: NDArray[np.uint8]) -> list[Addresses]:
    """See `References`."""
    end = (address - np.uint64(base)).view(np.int64) + size
    loads = end[size >= _LEA_SIZE]
    loads = loads[(code[loads - 6] == _LEA) & (code[loads - 5] & 0xC7 == 5)]
    computed = np.uint64(base) + (loads + _numbers(code, loads, 4)).view(np.uint64)
    return [computed, *(_numbers(code, end[size > width], width).view(np.uint64) for width in (4, 8))]


def computed(code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """See `Computed`. Fixed are ModRM 00 reg 101, from RIP, and 00 reg 100 with a SIB whose base is 101: none."""
    encoding = decode(code, offsets)
    has_no_base = (encoding.modrm & 0xC7 == 4) & (code.take(encoding.modrm_at + 1) & 7 == 5)
    is_fixed = encoding.rip_relative | has_no_base
    found: NDArray[np.bool_] = ~is_fixed | has(encoding.prefixes, Prefix.SEGMENT | Prefix.ADDRESS)
    return found


def _numbers(code: NDArray[np.uint8], end: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """The signed numbers of `width` bytes before each offset."""
    every = np.ndarray((max(len(code) - width + 1, 0),), f"<i{width}", code, strides=(1,))
    return every[end - width].astype(np.int64)
