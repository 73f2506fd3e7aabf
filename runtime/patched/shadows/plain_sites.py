"""Sites that no table of the guest lists -> breakpoints in memory, until the guest looks at their page or stores to it.

A kernel that writes to its own text sets breakpoints there as well (kprobes, kgdb), and copies the instruction first.
So it must find its own bytes wherever it looks. To decide what is executed at every page costs time, and most pages
are never looked at: a page has breakpoints in memory until then.
"""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import unique
from kinst.targets.elf.header import PT_LOAD

if TYPE_CHECKING:
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.memory import PhysicalMemory
    from kinst.runtime.patched.sites import SiteTable
    from kinst.targets.image import Image

_PAGE: Final = 4096
LONGEST: Final = 15  # bytes of an instruction, on amd64
_MOST: Final = 256  # bytes of what is listed
_SPAN: Final = _PAGE + 2 * LONGEST  # a page, with the bytes next to it that belong to instructions across its bounds


class PlainSites:
    """The sites of one image that have their breakpoints in memory."""

    def __init__(self, sites: "SiteTable", loaded: "Loaded", memory: "PhysicalMemory") -> None:
        """`loaded` is the image in `memory`."""
        self._sites, self._loaded, self._memory = sites, loaded, memory

    def pages(self) -> dict[int, int]:
        """The numbers of the physical pages with such breakpoints, and how far each is from its link address."""
        return self.pages_of(np.flatnonzero(self._sites.is_armed))

    def pages_of(self, rows: NDArray[np.intp]) -> dict[int, int]:
        """The same of some sites."""
        records, bias = self._sites.manifest.sites, self._loaded.bias
        addresses, sizes = records["address"][rows], records["size"][rows].astype(np.uint64)
        found: dict[int, int] = {}
        for virtual, physical, size in self._loaded.segments:
            distance = physical - virtual + bias
            inside = np.flatnonzero(addresses - np.uint64((virtual - bias) % 2**64) < np.uint64(size))
            places = addresses[inside] + np.uint64(distance % 2**64)
            for ends in (places, places + sizes[inside] - np.uint64(1)):
                found |= dict.fromkeys(unique(ends >> np.uint64(12)).tolist(), distance)
        return found

    def take(self) -> dict[int, NDArray[np.intp]]:
        """Put the guest's bytes back wherever breakpoints are in memory. Returns the rows of their sites by page.

        All pages at once, in a few milliseconds: a kernel that looks at one page of its text, as its function tracer
        does when it starts, soon looks at all.
        """
        sites = self._sites
        rows = np.flatnonzero(sites.is_armed)
        found: dict[int, list[NDArray[np.intp]]] = {}
        for virtual, physical, size in self._loaded.segments:
            link = np.uint64((virtual - self._loaded.bias) % 2**64)
            inside = rows[sites.manifest.sites["address"][rows] - link < np.uint64(size)]
            records = sites.manifest.sites[inside]
            starts = (records["address"] - link).view(np.int64)
            region = self._memory.find(physical)
            if region is not None:
                self._put_back(np.frombuffer(region.view, np.uint8), starts + (physical - region.base), records)
            first, last = (physical + starts) >> 12, (physical + starts + records["size"] - 1) >> 12
            for numbers, some in ((first, inside), (last[last != first], inside[last != first])):
                cuts = np.flatnonzero(np.diff(numbers)) + 1
                for part, group in zip(np.split(numbers, cuts), np.split(some, cuts), strict=True):
                    if len(group):
                        found.setdefault(int(part[0]), []).append(group)
        sites.is_deferred[rows] = True
        sites.is_patched[rows] = sites.is_armed[rows] = False
        return {page: parts[0] if len(parts) == 1 else unique(np.concatenate(parts)) for page, parts in found.items()}

    def _put_back(self, memory: NDArray[np.uint8], starts: NDArray[np.int64], records: NDArray[np.void]) -> None:
        """Write the instructions of sites where memory has breakpoints. Nothing is translated again: their pages are
        executed elsewhere from now on."""
        for size in unique(records["size"]).tolist():
            some = records["size"] == size
            armed = np.frombuffer(self._sites.armed_bytes[size], np.uint8)
            places = starts[some][:, None] + np.arange(len(armed))
            is_there = (places >= 0) & (places < len(memory))
            is_ours = (is_there & (memory[np.where(is_there, places, 0)] == armed)).all(axis=1)
            own = np.ascontiguousarray(records["original"][some]).view(np.uint8).reshape(len(places), -1)
            memory[places[is_ours]] = own[is_ours][:, : len(armed)]


class PageText:
    """The bytes of one page that were there when its sites were last looked at; at first those of the file."""

    def __init__(self, image: "Image", link: int, listed: NDArray[np.uint64]) -> None:
        """`link` is the page's link address, `listed` (n, 2) addresses and sizes of what the guest's tables list: it
        writes one instruction over another there, so that bounds of instructions stay."""
        self._start = link - LONGEST
        self._is_listed = _covered(listed, self._start)
        self._known = np.zeros(_SPAN, np.uint8)
        for segment in image.segments:
            low, high = (
                max(min(at - self._start, _SPAN), 0) for at in (segment.address, segment.address + segment.file_size)
            )
            if segment.kind == PT_LOAD and low < high:
                at = segment.offset + self._start + low - segment.address
                self._known[low:high] = image.data[at : at + high - low]

    def forget(self, addresses: NDArray[np.uint64]) -> None:
        """Take the bytes at sites for unknown."""
        places = (addresses - np.uint64(self._start % 2**64)).view(np.int64)
        self._known[places[(places >= 0) & (places < _SPAN)]] ^= 0xFF

    def changed(
        self, text: NDArray[np.uint8], addresses: NDArray[np.uint64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """At which sites there may be another instruction than before: its bytes differ, or some in front of it that an
        instruction across its start could have. The bytes are known from now on."""
        differs = (text != self._known) & ~self._is_listed
        self._known = text
        if not differs.any():
            return np.zeros(len(addresses), np.bool_)
        before = np.concatenate([[0], np.cumsum(differs)])
        starts = (addresses - np.uint64(self._start % 2**64)).view(np.int64)
        low, high = np.clip(starts - (LONGEST - 1), 0, _SPAN), np.clip(starts + sizes, 0, _SPAN)
        found: NDArray[np.bool_] = before[high] > before[low]
        return found


def _covered(listed: NDArray[np.uint64], start: int) -> NDArray[np.bool_]:
    """Which of the bytes from a link address on are in one of these ranges, which ascend."""
    bounds = np.array([max(start - _MOST, 0), max(start + _SPAN, 0)], np.uint64)
    first, end = np.searchsorted(listed[:, 0], bounds).tolist()
    low = (listed[first:end, 0] - np.uint64(start % 2**64)).view(np.int64)
    high = low + listed[first:end, 1].view(np.int64)
    steps = np.zeros(_SPAN + 1, np.int64)
    np.add.at(steps, np.clip(low, 0, _SPAN), 1)
    np.subtract.at(steps, np.clip(high, 0, _SPAN), 1)
    covered: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
    return covered
