"""amd64: the addresses that instructions make, by immediates, which come last, and by ``lea`` relative to RIP. And
where indirect jumps go: through memory, to the pointer stored there; through a register, as `amd64_switches` finds."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_decode import decode
from kinst.rewriter.jumps.amd64_switches import Switches
from kinst.rewriter.jumps.references import Jumps

Addresses = NDArray[np.uint64]
_LEA: Final = 0x8D  # in 48 8d /r disp32, with ModRM 00 reg 101
_REGISTER_FORM: Final = 0xC0
_LEA_SIZE: Final = 6  # without a prefix


def references(code: NDArray[np.uint8], base: int, address: Addresses, size: NDArray[np.uint8]) -> list[Addresses]:
    """See `References`."""
    end = (address - np.uint64(base)).view(np.int64) + size
    loads = end[size >= _LEA_SIZE]
    loads = loads[(code[loads - 6] == _LEA) & (code[loads - 5] & 0xC7 == 5)]
    computed = np.uint64(base) + (loads + _numbers(code, loads, 4)).view(np.uint64)
    return [computed, *(_numbers(code, end[size > width], width).view(np.uint64) for width in (4, 8))]


def tables(jumps: Jumps) -> Sequence[Sequence[int] | None]:
    """See `Tables`."""
    encoding, switches = decode(jumps.code, jumps.offsets[jumps.rows]), Switches(jumps)
    by_register = encoding.modrm >= _REGISTER_FORM
    return [
        switches.tables(row) if is_register else []
        for row, is_register in zip(jumps.rows.tolist(), by_register.tolist(), strict=True)
    ]


def _numbers(code: NDArray[np.uint8], end: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """The signed little-endian numbers of `width` bytes that end at each offset."""
    every = np.ndarray((max(len(code) - width + 1, 0),), f"<i{width}", code, strides=(1,))
    return every[end - width].astype(np.int64)
