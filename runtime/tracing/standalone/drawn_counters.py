"""Counters that nothing but trampolines may store to -> large start values, and whether a counter was overwritten.

A start value has bits that depend on the number of the counter, and fixed ones below, so that a store of a byte or a
halfword is noticed as well. Counters inside the image's own .bss are cleared by the image, once and all of them, in its
first microseconds (Linux for amd64: clear_bss, after some 260 calls). They are zero from there on, and what was counted
before is lost, as are the records of a ring: a missing start value shows that.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest

CLEARED: Final = (
    "the image cleared its .bss, with what its probes keep in it: hits of its first microseconds, before that, are lost"
)
_MOST: Final = np.uint64(1 << 44)  # hits that a counter can have: many hours of nothing else
_HASH: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_DRAWN, _BELOW = np.uint64(0x7FFF_F000_0000_0000), np.uint64(0x1080_8080_8080)


def drawn(count: int) -> NDArray[np.uint64]:
    """The start values of the first `count` counters."""
    found: NDArray[np.uint64] = np.arange(1, count + 1, dtype=np.uint64) * _HASH & _DRAWN | _BELOW
    return found


def counted(data: bytes, begun: NDArray[np.uint64], *, may_clear: bool) -> bytes:
    """The counts: the memory from the first counter on, without the start values. `may_clear`: the image may have
    cleared it."""
    words = np.frombuffer(data, "<u8")
    found: NDArray[np.uint64] = words - begun[: len(words)]
    return np.where(words < _MOST, words, found).tobytes() if may_clear else found.tobytes()


def is_cleared(data: bytes, begun: NDArray[np.uint64]) -> bool:
    """Whether a counter has lost its start value."""
    words = np.frombuffer(data, "<u8")
    return bool(((words < _MOST) & (begun[: len(words)] >= _MOST)).any())


def first_wrong(data: bytes) -> int | None:
    """The number of the first counter with an impossible count, which something else has stored; None: there is
    none."""
    wrong = np.flatnonzero(np.frombuffer(data, "<u8") >= _MOST)
    return int(wrong[0]) if len(wrong) else None


def is_of_image(image: Image, manifest: Manifest, address: int) -> bool:
    """Whether a link address is in a segment that was not added for the trampolines."""
    own = manifest.trampolines[0]
    return any(
        one.kind == PT_LOAD and one.address != own and 0 <= address - one.address < one.size for one in image.segments
    )
