"""Counters that nobody else is to store to -> numbers that they begin with, and whether one has what nothing counted.

A counter begins with bits that its number decides, and others below: a shorter store is seen as well. Those inside the
image's own .bss begin with zero: it clears them itself.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest

_MOST: Final = np.uint64(1 << 44)  # hits: hours of nothing else
_HASH: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_DRAWN, _BELOW = np.uint64(0x7FFF_F000_0000_0000), np.uint64(0x1080_8080_8080)


def drawn(count: int) -> NDArray[np.uint64]:
    """What so many counters begin with."""
    found: NDArray[np.uint64] = np.arange(1, count + 1, dtype=np.uint64) * _HASH & _DRAWN | _BELOW
    return found


def counted(data: bytes, begun: NDArray[np.uint64]) -> bytes:
    """What was counted, of what is in memory from the first counter on."""
    words = np.frombuffer(data, "<u8")
    found: NDArray[np.uint64] = words - begun[: len(words)]
    return found.tobytes()


def first_wrong(data: bytes) -> int | None:
    """The first counter, by number, of which what was counted cannot be; None: there is none."""
    wrong = np.flatnonzero(np.frombuffer(data, "<u8") >= _MOST)
    return int(wrong[0]) if len(wrong) else None


def is_of_image(image: Image, manifest: Manifest, address: int) -> bool:
    """Whether a link address is in a segment that was not added for the trampolines."""
    own = manifest.trampolines[0]
    return any(
        one.kind == PT_LOAD and one.address != own and 0 <= address - one.address < one.size for one in image.segments
    )
