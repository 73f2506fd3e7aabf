"""An image's breakpoints in RAM -> the guest's own bytes there; RAM of a snapshot -> the sites that are still there.

An armed site is a breakpoint in the guest's memory, and in each copy that the image has made of itself. A snapshot has
neither. A guest that continues from one has its code as it was at that moment: some of it may be gone, since kernels
free the memory of code that runs once, and some of it may be elsewhere.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import PF_X, PT_LOAD
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.memory import PhysicalMemory
    from kinst.runtime.patched.sites import SiteTable

_PAGE: Final = 4096
_PLACES: Final = (0x108, 0x508, 0x908, 0xD08)  # in a page, of the 64-bit words that select the page to compare with
_LEAST: Final = 64  # bytes of a page that are not 0
_LEAST_ALIKE: Final = 0.75  # of these: relocations and breakpoints are in the others
_LEAST_OURS: Final = 0.25  # of a page's bytes: with fewer, it has other content by now


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Code of the image: its link address, where it is in RAM, and bytes."""

    link: int
    physical: int
    size: int


class ArmedMemory:
    """The sites of one image in RAM that the guest does not write itself."""

    def __init__(self, sites: "SiteTable", loaded: "Loaded", memory: "PhysicalMemory") -> None:
        """`loaded` is the image in `memory`."""
        self._sites, self._loaded, self._memory = sites, loaded, memory
        self._copies: tuple[int, ...] = ()  # of a snapshot: physical less link address

    # -- taking a snapshot --------------------------------------------------------------------------------------------

    def own_bytes(self, copies: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """What the guest has where breakpoints are: physical addresses and bytes, copies of the image included."""
        for stretch in self._stretches(copies):
            for place, row in self._present(stretch, is_armed=True):
                size = len(self._sites.armed_bytes[int(self._sites.manifest.sites["size"][row])])
                yield place, self._sites.manifest.sites["original"][row].tobytes()[:size]
        yield from self._sites.static_marks.own_bytes()

    # -- continuing from one ------------------------------------------------------------------------------------------

    def restored(self, copies: Sequence[int]) -> int:
        """Note that memory is a snapshot's, before anything is armed. Sites whose instruction is nowhere any more are
        never armed again; returns how many."""
        self._copies = tuple(copies)
        sites = self._sites
        is_there, is_copied = (np.zeros(len(sites.manifest.sites), np.bool_) for _ in range(2))
        own = len(self._loaded.segments)
        for number, stretch in enumerate(self._stretches(copies)):
            found = is_there if number < own else is_copied
            for _, row in self._present(stretch, is_armed=False):
                found[row] = True
        overwritten = ~is_there & ~sites.is_deferred
        sites.leave_out(overwritten, overwritten & ~is_copied)
        return int((overwritten & ~is_copied).sum())

    def arm_copies(self) -> None:
        """Write what is armed into the copies as well, after it was written into the image."""
        sites = self._sites
        for stretch in self._stretches(self._copies)[len(self._loaded.segments) :]:
            # What was armed before has its breakpoint there, everything else its instruction.
            for is_armed in (False, True):
                for place, row in list(self._present(stretch, is_armed=is_armed)):
                    armed = sites.armed_bytes[int(sites.manifest.sites["size"][row])]
                    original = sites.manifest.sites["original"][row].tobytes()[: len(armed)]
                    self._memory.write(place, armed if sites.is_armed[row] else original)

    # -- where sites are ----------------------------------------------------------------------------------------------

    def _stretches(self, copies: Sequence[int]) -> list[_Stretch]:
        """The image's segments in memory, and then those of its copies."""
        bias = self._loaded.bias
        own = [_Stretch(virtual - bias, physical, size) for virtual, physical, size in self._loaded.segments]
        return [*own, *(_Stretch(one.link, one.link + copy, one.size) for copy in copies for one in own)]

    def _present(self, stretch: _Stretch, *, is_armed: bool) -> Iterator[tuple[int, int]]:
        """Physical addresses and rows of sites whose bytes in memory are those of the breakpoint (`is_armed`), or else
        of the instruction, in pages that still have the image's code."""
        records, deferred = self._sites.manifest.sites, self._sites.is_deferred
        inside = records["address"] - np.uint64(stretch.link) < np.uint64(stretch.size)
        chosen = inside & ~deferred & (self._sites.is_armed if is_armed else True)
        pages: dict[int, bytes] = {}  # those that still have it, others empty
        for row in np.flatnonzero(chosen).tolist():
            place = stretch.physical + int(records["address"][row]) - stretch.link
            size = int(records["size"][row])
            page = place // _PAGE
            if page not in pages:
                pages[page] = self._ours(page, page * _PAGE - stretch.physical + stretch.link)
            if not pages[page] or not self._memory.has(place, size):
                continue
            wanted = self._sites.armed_bytes[size] if is_armed else records["original"][row].tobytes()[:size]
            found = pages[page][place % _PAGE : place % _PAGE + len(wanted)]
            if (found if len(found) == len(wanted) else self._memory.read(place, len(wanted))) == wanted:
                yield place, row

    def _ours(self, page: int, link: int) -> bytes:
        """The bytes of a physical page that still has the image's code of a link address; else none."""
        if not self._memory.has(page * _PAGE, _PAGE):
            return b""
        content = self._memory.read(page * _PAGE, _PAGE)
        for segment in self._loaded.image.segments:
            start, end = max(link, segment.address), min(link + _PAGE, segment.address + segment.file_size)
            if segment.kind == PT_LOAD and start < end:
                linked = self._loaded.image.data[segment.offset + start - segment.address :][: end - start]
                now = np.frombuffer(content, np.uint8)[start - link : end - link]
                if np.mean(linked == now) >= _LEAST_OURS:
                    return content
        return b""


def copies_of(loaded: "Loaded", memory: "PhysicalMemory") -> tuple[int, ...]:
    """How far, in bytes, the copies of an image's code in RAM are from their link addresses. Firmware copies itself to
    the end of RAM by whole pages."""
    known = _words(loaded)
    found: Counter[int] = Counter()
    for region in memory.regions[:1]:
        pages = np.frombuffer(region.view, np.uint64).reshape(-1, _PAGE // 8)
        for place in _PLACES:
            column = pages[:, place // 8]
            words = np.array([word for at, word in known if at == place], np.uint64)
            for number in np.flatnonzero(np.isin(column, words)).tolist():
                physical, link = region.base + number * _PAGE, known[place, int(column[number])]
                if link is not None and not _is_loaded(loaded, physical) and _is_alike(loaded, link, pages[number]):
                    found[physical - link] += 1
    return tuple(sorted(found))


def _words(loaded: "Loaded") -> dict[tuple[int, int], int | None]:
    """Place and word -> the link address of the page of code that has it there; None: of several."""
    known: dict[tuple[int, int], int | None] = {}
    for segment in loaded.image.segments:
        if segment.kind == PT_LOAD and segment.flags & PF_X:
            for at in range(-segment.address % _PAGE, segment.file_size - _PAGE + 1, _PAGE):
                content = loaded.image.data[segment.offset + at :][:_PAGE]
                for place in _PLACES:
                    key = place, int.from_bytes(content[place : place + 8].tobytes(), "little")
                    known[key] = None if not key[1] or key in known else segment.address + at
    return known


def _is_loaded(loaded: "Loaded", physical: int) -> bool:
    """Whether the image itself was loaded there."""
    return any(start - _PAGE < physical < start + size for _, start, size in loaded.segments)


def _is_alike(loaded: "Loaded", link: int, page: NDArray[np.uint64]) -> bool:
    segment = next(one for one in loaded.image.segments if one.address <= link < one.address + one.file_size)
    known = loaded.image.data[segment.offset + link - segment.address :][:_PAGE]
    alike = (known == page.view(np.uint8))[known != 0]
    return len(alike) >= _LEAST and bool(alike.mean() >= _LEAST_ALIKE)
