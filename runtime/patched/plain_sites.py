"""Sites that no table of the guest lists -> breakpoints in memory, until the guest looks at their page or stores to it.

A kernel that writes to its own text sets breakpoints there as well (kprobes, kgdb), and copies the instruction first.
So it must find its own bytes wherever it looks. To decide what is executed at every page costs time, and most pages
are never looked at: a page has breakpoints in memory until then.
"""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import unique

if TYPE_CHECKING:
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.memory import PhysicalMemory
    from kinst.runtime.patched.sites import SiteTable

_PAGE: Final = 4096
LONGEST: Final = 15  # bytes of an instruction, on amd64
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

    def take(self, number: int, distance: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Put the guest's bytes back into a page. Returns the rows of the sites in it that had a breakpoint, and which
        of these had other bytes than ours in memory."""
        link = number * _PAGE - distance
        rows = self._sites.between(link, _PAGE)
        records = self._sites.manifest.sites
        ends = records["address"][rows] + records["size"][rows]
        rows = rows[self._sites.is_armed[rows] & (ends > np.uint64(max(link, 0)))]
        is_other = np.zeros(len(rows), np.bool_)
        for index, row in enumerate(rows.tolist()):
            armed = self._sites.armed_bytes[int(records["size"][row])]
            place = int(records["address"][row]) + distance
            if self._memory.has(place, len(armed)) and self._memory.read(place, len(armed)) == armed:
                self._memory.put_back(place, records["original"][row].tobytes()[: len(armed)])
            else:
                is_other[index] = True
        self._sites.is_deferred[rows] = True
        self._sites.is_patched[rows] = self._sites.is_armed[rows] = False
        return rows, is_other


class PageText:
    """The bytes of one page that were there when its sites were last looked at."""

    def __init__(self, link: int, listed: NDArray[np.uint64]) -> None:
        """`link` is the page's link address, `listed` (n, 2) addresses and sizes of what the guest's tables list: it
        writes one instruction over another there, so that bounds of instructions stay."""
        self._start = link - LONGEST
        self._is_listed = _covered(listed, self._start)
        self._known = np.zeros(_SPAN, np.uint8)

    def look(self, text: NDArray[np.uint8]) -> None:
        """Take these bytes for known."""
        self._known = text

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
    covered = np.zeros(_SPAN, np.bool_)
    bounds = np.array([max(start - 256, 0), max(start + _SPAN, 0)], np.uint64)
    first, end = np.searchsorted(listed[:, 0], bounds).tolist()
    for address, size in listed[first:end, :2].tolist():
        covered[max(address - start, 0) : max(address - start + size, 0)] = True
    return covered
