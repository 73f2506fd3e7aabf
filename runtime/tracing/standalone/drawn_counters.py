"""Counters that nothing but trampolines may store to -> large start values, and whether a counter was overwritten.

A start value has bits that depend on the number of the counter, and fixed ones below, so that a store of a byte or a
halfword is noticed as well. Counters inside the image's own .bss are cleared by the image, once and all of them, in its
first microseconds (Linux for amd64: clear_bss, after some 260 calls). They are zero from there on, and what was counted
before is lost, as are the records of a ring: a missing start value shows that.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import RING_HEAD, WORD, Action, Standalone
from kinst.targets.values import dataclass

CLEARED: Final = (
    "the image cleared its .bss, with what its probes keep in it: hits of its first microseconds, before that, are lost"
)
_MOST: Final = np.uint64(1 << 44)  # hits that a counter can have: many hours of nothing else
_HASH: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_DRAWN, _BELOW = np.uint64(0x7FFF_F000_0000_0000), np.uint64(0x1080_8080_8080)


@dataclass(frozen=True, slots=True)
class StartValues:
    """The start values of one image: of all its counters, or of a word that the head of its ring does not use.

    `offset`: bytes from the first counter, or from the ring. `may_clear`: the image may clear its memory.
    """

    offset: int
    words: NDArray[np.uint64]
    may_clear: bool

    @property
    def size(self) -> int:
        """In bytes."""
        return WORD * len(self.words)

    @property
    def data(self) -> bytes:
        """What is stored before the image runs."""
        return self.words.astype("<u8").tobytes()

    @property
    def as_loaded(self) -> "StartValues":
        """Those of memory that has only what its loader stored: zeros."""
        return replace(self, words=np.zeros_like(self.words))

    def counted(self, data: bytes) -> bytes:
        """The counts: the memory from the first counter on, without the start values."""
        words = np.frombuffer(data, "<u8")
        found: NDArray[np.uint64] = words - self.words[: len(words)]
        if self.may_clear:
            is_cleared = words < _MOST
            found = np.where(is_cleared, words, found)
            at = _place_of_clearing(words, is_cleared)
            if at is not None:
                found[at] = 0
        return found.tobytes()

    def is_cleared(self, data: bytes) -> bool:
        """Whether the image has cleared one. `data` is in their place now."""
        words = np.frombuffer(data, "<u8")
        return self.may_clear and bool(((words < _MOST) & (self.words >= _MOST)).any())


def _place_of_clearing(words: NDArray[np.uint64], is_cleared: NDArray[np.bool_]) -> int | None:
    """Where the image is clearing just now, byte by byte (`rep stosb`), while we read: the counters before are clear,
    those behind are not, and of the one there the lowest bytes are."""
    at = int(np.count_nonzero(is_cleared))
    is_between = 0 < at < len(words) and bool(is_cleared[:at].all())
    return at if is_between and int(words[at]) & 0xFF == 0 else None


def start_values(kept: Standalone, sites: int, *, may_clear: bool) -> StartValues:
    """Those of an image with so many sites. A ring whose memory nobody clears needs none."""
    if kept.has_counters:
        return StartValues(0, _drawn(sites if kept.action is Action.COUNT else kept.counters), may_clear)
    return StartValues(RING_HEAD - WORD, _drawn(int(may_clear)), may_clear)


def _drawn(count: int) -> NDArray[np.uint64]:
    found: NDArray[np.uint64] = np.arange(1, count + 1, dtype=np.uint64) * _HASH & _DRAWN | _BELOW
    return found


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
