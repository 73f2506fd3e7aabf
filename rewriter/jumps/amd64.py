"""amd64: the addresses that instructions make, by immediates, which come last, and by ``lea`` from RIP."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

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


def _numbers(code: NDArray[np.uint8], end: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """The signed numbers of `width` bytes before each offset."""
    every = np.ndarray((max(len(code) - width + 1, 0),), f"<i{width}", code, strides=(1,))
    return every[end - width].astype(np.int64)
