"""A physical page that is about to be executed -> how far an image that has it is from where it is linked.

A few words of the page select the page of the image to compare with. Then all of the image's code has to be there: the
page might be in another build as well.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.physical.frames import PAGE
from kinst.targets.elf.header import PF_X, PT_LOAD
from kinst.targets.image import Image, Segment

_PLACES: Final = range(0x08, PAGE, 0x100)  # in a page, of the words that select
_LEAST: Final = 32  # bytes of a page, other than 0, that must be the image's
_LEAST_ALIKE: Final = 0.75  # of these: relocations and breakpoints are in the others
_SAME_BUILD: Final = 0.9  # of the code of all pages: relocations may be applied to it
_MOST_TRIED: Final = 8  # times that all code is compared at one distance: it may be copied page by page


class ImagePages:
    """The pages of one image's code."""

    def __init__(self, image: Image) -> None:
        """`image` as it is in its file. Nothing is read yet."""
        self._segments = [one for one in image.segments if one.kind == PT_LOAD and one.file_size]
        self._data = image.data
        self._tried: Counter[int] = Counter()  # distances at which not all of it was there
        self.best = 0.0  # of places that had a page of the image, but other code than its own: how much was the same

    def distance(self, page: int, memory: PhysicalMemory, expected: int | None) -> int | None:
        """How far the image is from its load addresses, in bytes; None if it is not there.

        Args:
            page: the address of a physical page.
            memory: what has it.
            expected: the distance, if that is known: then the image may be smaller than what is needed to tell it
                from others.
        """
        if not memory.has(page, PAGE):
            return None
        content = np.frombuffer(memory.view(page, PAGE, is_written=False), np.uint8)
        if (
            expected is not None
            and page - expected in self._pages
            and _is_alike(self._page(page - expected), content, 1)
        ):
            return expected if self._is_there(expected, memory) else None
        words = content.view("<u8")
        links = dict.fromkeys(self._words.get((place, int(words[place // 8])), -1) for place in _PLACES)
        for link in links:
            if link >= 0 and _is_alike(self._page(link), content, _LEAST) and self._is_there(page - link, memory):
                return page - link
        return None

    def _is_there(self, distance: int, memory: PhysicalMemory) -> bool:
        if self._tried[distance] >= _MOST_TRIED:
            return False
        self._tried[distance] += 1
        same = total = 0
        for segment in self._executable:
            if not memory.has(segment.load_address + distance, segment.file_size):
                return False
            view = memory.view(segment.load_address + distance, segment.file_size, is_written=False)
            own = self._data[segment.offset : segment.offset + segment.file_size]
            known = own != 0
            total += int(known.sum())
            same += int(((own == np.frombuffer(view, np.uint8)) & known).sum())
        alike = same / total if total else 0.0
        self.best = max(self.best, alike)
        return alike >= _SAME_BUILD

    @property
    def _executable(self) -> Iterator[Segment]:
        return (one for one in self._segments if one.flags & PF_X)

    @cached_property
    def _pages(self) -> dict[int, tuple[int, int, int]]:
        """Load address of each page with code -> where in it the bytes of the file are, and where these are in the
        file."""
        found = {}
        for one in self._executable:
            end = one.load_address + one.file_size
            for page in range(one.load_address & -PAGE, end, PAGE):
                start, stop = max(page, one.load_address), min(page + PAGE, end)
                found[page] = start - page, stop - page, one.offset + start - one.load_address
        return found

    def _page(self, link: int) -> NDArray[np.uint8]:
        """A page of the image; zero where it has none of it."""
        start, stop, offset = self._pages[link]
        content = np.zeros(PAGE, np.uint8)
        content[start:stop] = self._data[offset : offset + stop - start]
        return content

    @cached_property
    def _words(self) -> dict[tuple[int, int], int]:
        """A place in a page, and the word there -> the load address of the page; -1: of several."""
        found: dict[tuple[int, int], int] = {}
        for link in self._pages:
            words = self._page(link).view("<u8")
            for place in _PLACES:
                word = int(words[place // 8])
                if word:
                    found[place, word] = -1 if (place, word) in found else link
        return found


def _is_alike(known: NDArray[np.uint8], found: NDArray[np.uint8], least: int) -> bool:
    alike = (known == found)[known != 0]
    return len(alike) >= least and bool(alike.mean() >= _LEAST_ALIKE)
