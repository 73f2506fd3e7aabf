"""Sites at which blocks of code begin -> how often each CPU came there, counted by the hook at blocks.

A block begins wherever control may come from elsewhere, and the hook is called before it: to count there takes no
breakpoint, and the guest's memory stays as it is. Where control also falls through from the instruction before, a block
has the site inside: the run ends before such a block, and its owner must have the site counted in another way.
"""

import ctypes
import mmap
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.host.blocks import SLACK, BlockState
from kinst.runtime.engine.host.fields import HASH

PLACES: Final = 2  # at which the code may be
_WORD: Final = (1 << 64) - 1
_BYTES: Final = 8  # of a word
_FREE: Final = _WORD
Taken = list[tuple[int, int, int]]  # CPU, number of the site, hits


class BlockCounters:
    """The sites of one engine, and the cells of its CPUs."""

    def __init__(self, state: BlockState) -> None:
        """`state` is the hook's. Nothing is counted yet."""
        self._state = state
        self._base = 0  # the first address that has a bit, as the code was linked
        self._sites = 0
        self._offsets = self._leads = np.zeros(0, np.uint64)
        self._bits = memoryview(b"")
        self._rows = np.zeros((0, 2), np.uint64)
        self._cells: list[NDArray[np.uint64]] = []  # of each CPU
        self._cpu = 0
        self._distances: Sequence[int] = ()

    def set(self, addresses: NDArray[np.uint64], leads: NDArray[np.uint64]) -> None:
        """Have these sites and no others; none of them is turned on. What was counted was taken.

        Args:
            addresses: where they were linked, ascending; a site's number is its place here.
            leads: from how many bytes before each site control always comes to it, if a block that begins there has
                the site inside.
        """
        self._state.bits = 0  # first: the hook follows no other pointer of the state while this is 0
        self._sites, self._cells = len(addresses), []
        self.use(self._cpu)
        if not self._sites:
            return
        self._base = (int(addresses[0]) - SLACK) & _WORD  # a block that begins before the first site may have it inside
        offsets = addresses - np.uint64(self._base)
        self._state.span = int(offsets[-1]) + 1
        self._offsets, self._leads = offsets, leads
        # As many as there may be bytes of blocks that begin before the last site, and a word more.
        self._bits = memoryview(mmap.mmap(-1, (self._state.span + SLACK) // 8 + 2 * _BYTES))
        numbers = np.arange(self._sites)
        has_lead = leads > 0
        self._make_rows(
            np.concatenate([offsets, (offsets - leads)[has_lead]]),
            np.concatenate([numbers, numbers[has_lead]]).astype(np.uint64),
            np.concatenate([np.zeros_like(leads), leads[has_lead]]),
        )
        self.be_at(self._distances)

    def be_at(self, distances: Sequence[int]) -> None:
        """Set how far the code is from where it was linked, in bytes: at most `PLACES` numbers."""
        self._distances = distances
        if not distances or not self._sites:
            self._state.bits = 0
            return
        # The host code always compares both: with one copy of the code, the second is the same again.
        places = [(self._base + distance) & _WORD for distance in (*distances, distances[0])]
        self._state.first, self._state.second = places[:PLACES]
        self._state.bits = ctypes.addressof(ctypes.c_char.from_buffer(self._bits))

    def turn_on(self, numbers: NDArray[np.intp]) -> None:
        """Count at these sites."""
        # `.at`, since two sites may share a byte, of which a plain fancy-indexed `|=` would keep only the last.
        offsets, bits = self._of(numbers), np.frombuffer(self._bits, np.uint8)
        np.bitwise_or.at(bits, (offsets >> np.uint64(3)).astype(np.int64), _bit(offsets))

    def turn_off(self, numbers: NDArray[np.intp]) -> None:
        """Do not count at these sites."""
        offsets, bits = self._of(numbers), np.frombuffer(self._bits, np.uint8)
        np.bitwise_and.at(bits, (offsets >> np.uint64(3)).astype(np.int64), ~_bit(offsets))

    def _of(self, numbers: NDArray[np.intp]) -> NDArray[np.uint64]:
        """Where blocks begin that count for these sites."""
        offsets, leads = self._offsets[numbers], self._leads[numbers]
        return np.concatenate([offsets, (offsets - leads)[leads > 0]])

    def use(self, cpu: int) -> None:
        """Count in the cells of this CPU: it runs."""
        self._cpu = cpu
        while len(self._cells) <= cpu:
            self._cells.append(np.zeros(max(self._sites, 1), np.uint64))
        self._state.cells = self._cells[cpu].ctypes.data

    def take(self) -> Taken:
        """What was counted since the last time, by CPU and site, ascending."""
        taken: Taken = []
        for cpu, cells in enumerate(self._cells):
            found = np.flatnonzero(cells)
            taken += [(cpu, number, hits) for number, hits in zip(found.tolist(), cells[found].tolist(), strict=True)]
            cells[found] = 0
        return taken

    def take_back(self, address: int) -> None:
        """Uncount the site at this address, if there is one: the run ended after the hook, which will be called
        again."""
        found = self._site_at(address)
        if found is not None and (not found[1] or self._state.size & 0xFFFF_FFFF > found[1]):
            self._cells[self._cpu][found[0]] -= np.uint64(1)

    @property
    def has_stopped(self) -> bool:
        """Whether the last run ended because of a site inside a block that `stopped_before` has not yet returned."""
        return bool(self._state.inside)

    def stopped_before(self) -> tuple[int, int] | None:
        """The address and the size of the block that ended the last run because of a site inside it."""
        found, self._state.inside = self._state.inside, 0
        return (found, self._state.size & 0xFFFF_FFFF) if found else None

    def count(self, address: int, size: int) -> bool:
        """What the machine code does for a block. True: the run ends before it."""
        if not self._state.bits:
            return False
        offset = self._offset(address)
        if offset is None:
            return False
        number, lead = self._site_at(address) or (-1, 0)
        self._state.size = size
        if any(self._has_bit(offset + step) for step in range(lead + 1, size)):
            self._state.inside = address
            return True
        if number >= 0 and size > lead:
            self._cells[self._cpu][number] += np.uint64(1)
        return False

    def _offset(self, address: int) -> int | None:
        """How far an address is from the first that has a bit, at one of the places."""
        offsets = ((address - first) & _WORD for first in (self._state.first, self._state.second))
        return next((offset for offset in offsets if offset < self._state.span), None)

    def _has_bit(self, offset: int) -> bool:
        return bool(self._bits[offset >> 3] >> (offset & 7) & 1)

    def _site_at(self, address: int) -> tuple[int, int] | None:
        """The number of the site that is counted at an address, and how far behind it is."""
        offset = self._offset(address) if self._state.bits else None
        if offset is None or not self._has_bit(offset):
            return None
        place = (offset * HASH & _WORD) >> 32
        while True:
            place &= self._state.rows_mask
            if int(self._rows[place, 0]) == offset:
                cell = int(self._rows[place, 1])
                return (cell & 0xFFFF_FFFF) // _BYTES, cell >> 32
            place += 1

    # -- tables -------------------------------------------------------------------------------------------------------

    def _make_rows(self, offsets: NDArray[np.uint64], numbers: NDArray[np.uint64], leads: NDArray[np.uint64]) -> None:
        """Make the table: open addressing with linear probing, by the distance from the first address."""
        size = 1 << (2 * len(offsets)).bit_length()
        mask = size - 1
        places = ((offsets * np.uint64(HASH)) >> np.uint64(32)).astype(np.int64) & mask
        rows = np.full((size, 2), _FREE, np.uint64)
        left = np.arange(len(offsets))
        # All rows at once: of those that want the same free place, the first gets it, and the others move on by one. A
        # Python loop over the sites of a whole kernel would take seconds.
        while len(left):
            free = left[rows[places[left], 0] == np.uint64(_FREE)]
            _, first = np.unique(places[free], return_index=True)
            taken = free[first]
            rows[places[taken], 0] = offsets[taken]
            rows[places[taken], 1] = numbers[taken] * np.uint64(_BYTES) | leads[taken] << np.uint64(32)
            left = np.setdiff1d(left, taken, assume_unique=True)
            places[left] = (places[left] + 1) & mask
        self._rows = rows
        self._state.rows, self._state.rows_mask = rows.ctypes.data, mask


def _bit(offsets: NDArray[np.uint64]) -> NDArray[np.uint8]:
    bits: NDArray[np.uint8] = (np.uint64(1) << (offsets & np.uint64(7))).astype(np.uint8)
    return bits
