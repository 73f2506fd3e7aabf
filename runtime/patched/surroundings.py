"""A breakpoint somewhere in memory -> the one site of an image whose surroundings are alike, or none.

The bytes around it are compared with those around each site in the file, except those that relocations or the guest
change.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.paging.walker import PageFault
from kinst.targets.image import Image
from kinst.targets.values import dataclass

REACHES: Final = (32, 1 << 8, 1 << 11, 1 << 14, 1 << 17)  # bytes on each side that must match
_AT_FIRST: Final = 24  # bytes that are compared for all candidates at once
_PAGE: Final = 4096


class Surroundings:
    """The code of an image, with the breakpoints that memory holds."""

    def __init__(self, texts: "Sequence[CodeText]", fetch: Callable[[int, int], bytes]) -> None:
        """`fetch` reads instruction bytes at a virtual address; it raises PageFault."""
        self._texts = texts
        self._fetch = fetch

    def one_of(self, pc: int, candidates: NDArray[np.uint64]) -> int | None:
        """The one candidate, a link address, of which the code around `pc` can be a copy. Where every instruction is
        probed, nearly all bytes are breakpoints, so more and more of them are compared."""
        for reach in REACHES:
            candidates = self.alike(pc, candidates, reach)
            if len(candidates) < 2:
                return int(candidates[0]) if len(candidates) else None
        return None

    def alike(self, pc: int, candidates: NDArray[np.uint64], reach: int) -> NDArray[np.uint64]:
        """The candidates whose surroundings match those of `pc`, for `reach` bytes on each side."""
        before = np.frombuffer(self._bytes_before(pc, reach), np.uint8)
        around = np.concatenate([before, np.frombuffer(self._bytes_after(pc, reach), np.uint8)])
        parts = [text.matching(candidates, around, len(before)) for text in self._texts]
        found: NDArray[np.uint64] = np.concatenate([candidates[:0], *parts])
        return found

    def _bytes_after(self, pc: int, reach: int) -> bytes:
        """At most `reach` bytes from `pc` on, as far as there is memory."""
        parts, at = [], pc
        try:
            while at < pc + reach:
                size = min(pc + reach, (at | _PAGE - 1) + 1) - at
                parts.append(self._fetch(at, size))
                at += size
        except PageFault:
            pass
        return b"".join(parts)

    def _bytes_before(self, pc: int, reach: int) -> bytes:
        parts, end = [], pc
        try:
            while end > pc - reach:
                start = max(pc - reach, (end - 1) & -_PAGE)
                parts.append(self._fetch(start, end - start))
                end = start
        except PageFault:
            pass
        return b"".join(reversed(parts))


@dataclass(frozen=True, slots=True)
class CodeText:
    """Bytes from a link address on. `is_written` marks those that relocations change when the image moves."""

    address: int
    content: NDArray[np.uint8]
    is_written: NDArray[np.bool_]

    def matching(self, candidates: NDArray[np.uint64], around: NDArray[np.uint8], before: int) -> NDArray[np.uint64]:
        """The candidates that match `around`, whose byte number `before` is the candidate's first."""
        inside = candidates[candidates - np.uint64(self.address) < np.uint64(len(self.content))]
        starts = (inside - np.uint64(self.address)).astype(np.int64) - before
        for at in range(before, min(before + _AT_FIRST, len(around))):  # in bulk, since there may be millions
            fits = starts + at < len(self.content)  # past the end may be anything
            places = np.where(fits, starts + at, 0)
            alike = ~fits | (self.content[places] == around[at]) | self.is_written[places]
            inside, starts = inside[alike], starts[alike]
        agrees = [self._agrees(start, around) for start in starts.tolist()]
        return inside[np.array(agrees, np.bool_)]

    def _agrees(self, start: int, around: NDArray[np.uint8]) -> bool:
        cut = max(0, -start)  # what comes before the segment may be anything
        mine = slice(start + cut, start + len(around))
        theirs = around[cut : cut + len(self.content[mine])]
        return bool(((self.content[mine] == theirs) | self.is_written[mine]).all())


def texts_of(image: Image, addresses: NDArray[np.uint64], written: NDArray[np.uint64]) -> Sequence[CodeText]:
    """Copies of the parts of an image that have sites: segments, or the sections of a module. `addresses` are those of
    the sites; `written`: address and size of what the loader or the image itself changes."""
    texts = []
    for start, offset, size in image.in_file:
        if (addresses - np.uint64(start) < np.uint64(size)).any():
            content = image.data[offset : offset + size].copy()
            texts.append(CodeText(start, content, _marked(written, start, size)))
    return texts


def _marked(written: NDArray[np.uint64], start: int, size: int) -> NDArray[np.bool_]:
    marked = np.zeros(size, np.bool_)
    for address, length in written.tolist():
        at = address - start
        if -length < at < size:
            marked[max(0, at) : at + length] = True
    return marked
