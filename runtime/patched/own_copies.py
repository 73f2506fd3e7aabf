"""An address that is in no known part of an image -> the distance of the copy of itself that the image made there.

Firmware such as U-Boot runs where it was loaded only as long as it must: it copies itself to the end of RAM, and
continues there. It moves by whole pages, and its physical addresses are its virtual ones. Those of a kernel and of
programs are not, so that for a page of theirs one translation is all that this costs.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.physical.frames import PAGE
from kinst.targets.elf.header import PF_X, PT_LOAD

_PLACES: Final = (0x108, 0x508, 0x908, 0xD08)  # in a page, of the 64-bit words that select the page to compare with
_LEAST: Final = 64  # bytes of a page that are not 0
_LEAST_ALIKE: Final = 0.75  # of these: relocations and breakpoints are in the others
_MOST_SEEN: Final = 1 << 16


class OwnCopies:
    """Finds the copies of one image."""

    def __init__(self, loaded: Loaded, memory: PhysicalMemory, observe: Callable[[int], int | None]) -> None:
        """Nothing is read before the first question. `observe` gives the physical address of a virtual one."""
        self._loaded, self._memory, self._observe = loaded, memory, observe
        self._pages: dict[int, NDArray[np.uint8]] = {}  # link address -> content
        self._words: dict[tuple[int, int], int] = {}  # place and word -> link address; -1: of several pages
        self._seen: set[int] = set()  # virtual pages that are no copies

    def finder(self, known: Callable[[], Sequence[int]], add: Callable[[int], None]) -> Callable[[int], bool]:
        """A function that says whether an address is in a copy that was not known so far; it adds that one."""

        def find(address: int) -> bool:
            distance = self.distance(address)
            if distance is None or distance in known():
                return False
            add(distance)
            return True

        return find

    def distance(self, address: int) -> int | None:
        """How far, in bytes, the code at an address is from its link address; None if it is not the image's."""
        page = address & -PAGE
        if page in self._seen:
            return None
        found = self._link(page) if self._observe(address) == address and self._is_outside(page) else None
        if found is None:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen.add(page)
        return None if found is None else page - found

    def _is_outside(self, page: int) -> bool:
        """Whether there is memory that is not the loaded image itself: a kernel's early code runs there at physical
        addresses, and is no copy."""
        loaded = (range(start, start + size) for _, start, size in self._loaded.segments)
        return self._memory.has(page, PAGE) and not any(page in one for one in loaded)

    def _link(self, page: int) -> int | None:
        """The link address of the page of which this one is a copy."""
        if not self._words:
            self._read()
        content = np.frombuffer(self._memory.read(page, PAGE), np.uint8)
        words = content.view("<u8")
        for place in _PLACES:
            link = self._words.get((place, int(words[place // 8])), -1)
            if link >= 0 and _is_alike(self._pages[link], content):
                return link
        return None

    def _read(self) -> None:
        image = self._loaded.image
        for segment in image.segments:
            if segment.kind != PT_LOAD or not segment.flags & PF_X:
                continue
            skipped = -segment.address % PAGE
            for at in range(skipped, segment.file_size - PAGE + 1, PAGE):
                content = image.data[segment.offset + at : segment.offset + at + PAGE]
                self._note(segment.address + at, content)

    def _note(self, link: int, content: NDArray[np.uint8]) -> None:
        self._pages[link] = content
        for place in _PLACES:
            word = int.from_bytes(content[place : place + 8].tobytes(), "little")
            self._words[place, word] = -1 if not word or (place, word) in self._words else link


def _is_alike(known: NDArray[np.uint8], found: NDArray[np.uint8]) -> bool:
    alike = (known == found)[known != 0]
    return len(alike) >= _LEAST and bool(alike.mean() >= _LEAST_ALIKE)
