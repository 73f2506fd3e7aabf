"""A physical page that is executed -> the part of the image that is in it: where it was loaded, or copied to.

An image that copies itself, as U-Boot does, moves by whole pages. A few words of a page select the one to compare with.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.memory import PhysicalMemory

_PAGE: Final = 4096
_WORD: Final = 8
_PLACES: Final = (0x108, 0x508, 0x908, 0xD08)  # in a page, of the words that are compared
_LEAST: Final = 64  # bytes of a page that are not 0
_LEAST_ALIKE: Final = 0.75  # of these: relocations change the others


class CodeCopies:
    """The pages of an image's code, and where copies of them are."""

    def __init__(self, loaded: Loaded, memory: PhysicalMemory) -> None:
        """`loaded` is the image in memory."""
        self._loaded, self._memory = loaded, memory
        self._words: dict[tuple[int, int], int] = {}  # place and word -> link address of the page; -1: of several
        self._seen: set[int] = set()  # physical pages that are no copies
        self._moved: list[int] = []  # physical - link address of the copies

    def note_pages(self, addresses: NDArray[np.uint64]) -> None:
        """Note words of the pages that have sites at these link addresses, before the guest runs."""
        if self._words:
            return
        for page in np.unique(addresses // np.uint64(_PAGE)).tolist():
            content = self._page(page * _PAGE)
            for place in _PLACES if content else ():
                word = int.from_bytes(content[place : place + _WORD], "little")
                self._words[place, word] = -1 if not word or (place, word) in self._words else page * _PAGE

    def _page(self, link: int) -> bytes:
        place = self._loaded.physical(link)
        return b"" if place is None or not self._memory.has(place, _PAGE) else self._memory.read(place, _PAGE)

    def link_address(self, physical: int) -> int | None:
        """The link address of the image's code at a physical one; None if other code is there."""
        for virtual, start, size in self._loaded.segments:
            if start <= physical < start + size:
                return physical - start + virtual - self._loaded.bias
        page = physical & -_PAGE
        if page in self._seen:
            return None
        found = self._copy(page)
        if found is None:
            self._seen.add(page)
            return None
        if page - found not in self._moved:
            self._moved.append(page - found)
        return found + physical % _PAGE

    @property
    def are_there(self) -> bool:
        """Whether there are copies."""
        return bool(self._moved)

    def _copy(self, page: int) -> int | None:
        """The link address of the page of which this one is a copy."""
        for distance in self._moved:
            if self._is_alike(page, page - distance):
                return page - distance
        if not self._memory.has(page, _PAGE):
            return None
        for place in _PLACES:
            link = self._words.get((place, self._memory.load(page + place, _WORD)), -1)
            if link >= 0 and self._is_alike(page, link):
                return link
        return None

    def _is_alike(self, page: int, link: int) -> bool:
        ours, theirs = self._page(link), self._memory.read(page, _PAGE) if self._memory.has(page, _PAGE) else b""
        if not ours or not theirs:
            return False
        known = np.frombuffer(ours, np.uint8)
        alike = (known == np.frombuffer(theirs, np.uint8))[known != 0]
        return len(alike) >= _LEAST and bool(alike.mean() >= _LEAST_ALIKE)

    def places(self, link: int) -> list[int]:
        """The physical addresses of a link address: in the image, and in its copies."""
        place = self._loaded.physical(link)
        return [*([] if place is None else [place]), *(link + distance for distance in self._moved)]
