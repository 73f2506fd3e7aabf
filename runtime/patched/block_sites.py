"""Enabled probes that only count, at functions' entries -> hits that the engine counts where blocks of code begin.

Such a site needs no breakpoint: the guest's memory stays as it is, and a hit takes a few nanoseconds. Two conditions
are watched: a block begins at the site each time that it is executed, and the engine knows at which addresses the code
is. A site for which the first fails gets its breakpoint; when the second fails, all do.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.block_counters import PLACES
from kinst.runtime.engine.host.blocks import SLACK
from kinst.runtime.hits.actions import Batched
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access
from kinst.runtime.patched.block_choice import BlockChoice
from kinst.runtime.patched.code_copies import CodeCopies
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.trap.trap import Enabling

_ADDRESS: Final = (1 << 64) - 1
_MANY_PAGES: Final = 1 << 16
_PAGE: Final = 4096
_PAGE_SHIFT: Final = 10  # no page of the emulator is smaller


class BlockSites:
    """The sites of one image that are counted where blocks begin."""

    def __init__(self, sites: SiteTable, choice: BlockChoice, loaded: Loaded, system: System) -> None:
        """None is counted yet. `choice` has decided which of `sites` will be."""
        self._sites, self._choice, self._loaded, self._system = sites, choice, loaded, system
        self._counters = system.engine.block_counters
        self._rows = np.zeros(0, np.intp)  # of the sites, in the order of the engine's numbers
        self._addresses: NDArray[np.uint64] = np.zeros(0, np.uint64)  # their link addresses, ascending
        self._leads = choice.leads
        self._enablings: dict[int, tuple[Enabling, ...]] = {}  # by row, what runs for hits
        self._copies = CodeCopies(loaded, system.memory)
        self._distances: list[int] = []  # at which the code was executed, from its link address
        self._known: set[tuple[int, int, bool]] = set()  # (virtual page, physical page, is it of another mode)
        self._foreign: list[int] = []  # link addresses of pages with code of another mode
        self._asks_again = False
        self.moved = 0  # sites that got breakpoints while the guest ran
        self._on_moved: list[Callable[[], None]] = []
        self._on_armed: list[Callable[[NDArray[np.intp]], None]] = []
        self._has_stopped = False  # the run, for work that needs the CPU to stand still
        system.space.on_executable(self._executable)
        system.attach_interlude(self)

    @property
    def why_not(self) -> str:
        """Why no site is counted here any more; empty if sites are."""
        return self._choice.why_not

    def on_moved(self, call: Callable[[], None]) -> None:
        """Call this when sites that the guest writes need breakpoints after all."""
        self._on_moved.append(call)

    def on_armed(self, call: Callable[[NDArray[np.intp]], None]) -> None:
        """Call this with the rows of sites that have got their breakpoints in memory after all."""
        self._on_armed.append(call)

    # -- what is counted ----------------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Start to count at the chosen sites."""
        self._rows = np.flatnonzero(self._sites.at_blocks)
        self._addresses = self._sites.manifest.sites["address"][self._rows]
        self._enablings.clear()
        if len(self._rows):
            self._copies.note_pages(self._addresses)
        self._counters.set(self._addresses, self._leads[self._rows])
        if len(self._rows):
            self._counters.turn_on(np.flatnonzero(~self._sites.is_deferred[self._rows]))
        self._counters.be_at(self._distances)
        self._asks_again = self._system.has_run
        if self._asks_again:
            self._stop()  # until the engine knows again where the code is

    def shown(
        self, rows: NDArray[np.intp], original: NDArray[np.void], is_armed: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which rows of deferred sites need no breakpoint. `original` are the instructions that are there now, and
        `is_armed` says which of them can be probed."""
        is_here = self._sites.at_blocks[rows]
        found: NDArray[np.bool_] = is_here & ~self._choice.repeats(original)
        if is_here.any():
            numbers = np.searchsorted(self._rows, rows)
            self._counters.turn_off(numbers[is_here & ~(found & is_armed)])
            self._counters.turn_on(numbers[found & is_armed])
        return found

    def fold(self) -> None:
        """Give what was counted to the actions."""
        for cpu, number, hits in self._counters.take():
            for enabling in self._enablings_of(number):
                action = enabling.action
                assert isinstance(action, Batched)
                assert action.count is not None
                action.count(enabling, cpu, hits, [])

    def _enablings_of(self, number: int) -> tuple[Enabling, ...]:
        found = self._enablings.get(number)
        if found is None:
            found = self._enablings[number] = self._sites.enablings(int(self._rows[number]))
        return found

    # -- where the code is --------------------------------------------------------------------------------------------

    def _executable(self, address: int, physical: int, _access: Access) -> None:
        """The guest may execute a page from now on, by a virtual address in it."""
        if not len(self._rows):
            return
        is_foreign = bool(self._system.exceptions.foreign_mode(self._system.current))
        pages = address >> _PAGE_SHIFT, physical >> _PAGE_SHIFT, is_foreign
        if pages in self._known:
            return
        if len(self._known) >= _MANY_PAGES:
            self._known.clear()
        self._known.add(pages)
        # The engine counts by virtual address: other code at an address of the image's would be counted as the image's.
        link = self._copies.link_address(physical)
        if link is not None and self._copies.are_there:
            self._give_up("the guest executes a copy of its code")
        elif link is not None:
            self._add_distance(address - link)
            if is_foreign:  # as `ModeCheck` finds at a breakpoint
                self._foreign.append(link & -_PAGE)
                self._stop()
        elif any(self._is_near((address - distance) & _ADDRESS) for distance in self._distances):
            self._give_up("the guest executes other code where the image was")

    def _add_distance(self, distance: int) -> None:
        if distance in self._distances:
            return
        if len(self._distances) == PLACES:
            self._give_up(f"the image's code is at more than {PLACES} places")
            return
        self._distances.append(distance)
        self._counters.be_at(self._distances)

    def _is_near(self, link: int) -> bool:
        first, last = int(self._addresses[0]), int(self._addresses[-1])
        return first - SLACK <= link <= last

    def _give_up(self, why: str) -> None:
        if self._choice.give_up(why):
            self._sites.decide_again()
            self._stop()  # before the page that was found is executed

    # -- breakpoints after all ----------------------------------------------------------------------------------------

    def _stop(self) -> None:
        self._has_stopped = True
        self._system.engine.stop()

    def ended(self) -> bool:
        """See `Interlude`: whether a site needs its breakpoint."""
        return self._has_stopped or self._counters.has_stopped

    def begin(self) -> None:
        """See `Interlude`: write breakpoints for sites that cannot be counted here."""
        self._has_stopped = False
        if self._asks_again:
            self._asks_again = False
            self._known.clear()
            self._system.space.ask_again()
        if self.why_not and len(self._rows):
            self.fold()
            self._break_at(np.flatnonzero(self._sites.at_blocks[self._rows]))
            self._rows, self._addresses = self._rows[:0], self._addresses[:0]
            self._counters.set(self._addresses, self._leads[:0])
            self._enablings.clear()
            return
        block = self._counters.stopped_before()
        if block is not None:
            # At its start the hook counts; a site behind that was reached by falling through, unseen.
            for distance in self._distances:
                self._break_between((block[0] - distance + 1) & _ADDRESS, block[1] - 1)
        while self._foreign:
            self._break_between(self._foreign.pop(), _PAGE)

    def _break_between(self, link: int, size: int) -> None:
        """Write breakpoints for the sites in a range of link addresses."""
        bounds = np.array([link, min(link + size, _ADDRESS)], np.uint64)
        numbers = np.arange(*np.searchsorted(self._addresses, bounds))
        numbers = numbers[self._sites.at_blocks[self._rows[numbers]]]
        if len(numbers):
            self._counters.turn_off(numbers)
            self._break_at(numbers)

    def _break_at(self, numbers: NDArray[np.intp]) -> None:
        sites, memory = self._sites, self._system.memory
        is_deferred = sites.is_deferred[self._rows[numbers]]
        for number in numbers[~is_deferred].tolist():
            row, address = int(self._rows[number]), int(self._addresses[number])
            size = int(sites.manifest.sites["size"][row])
            original = sites.manifest.sites["original"][row].tobytes()[:size]
            sites.at_blocks[row], sites.is_armed[row] = False, True
            self.moved += 1
            for place in self._copies.places(address):
                # What the guest has put there since is not a site's any more.
                if memory.has(place, size) and memory.read(place, size) == original:
                    memory.write(place, sites.armed_bytes[size])
        if not is_deferred.all():
            for tell in self._on_armed:
                tell(self._rows[numbers[~is_deferred]])
        if is_deferred.any():
            sites.at_blocks[self._rows[numbers[is_deferred]]] = False
            self.moved += int(is_deferred.sum())
            for call in self._on_moved:
                call()
