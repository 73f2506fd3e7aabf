"""Sites that the guest itself writes -> shadows of its code pages, in which they are probed; memory keeps its bytes.

A kernel writes over its own text: static keys, alternatives, returns, the nops of its function tracer. The file and
memory keep its bytes at such a site. What is executed is a *shadow* of the page: a copy with breakpoints at the enabled
sites. Loads and stores go to the page itself, so the kernel finds there what it expects. A page is in one of two
states:

    shown    its shadow is executed; stores to it miss the TLB
    open     the guest has stored to it; fetches from it miss the TLB

A fetch from an open page shows it: its content is decoded again, and every site that has the start of an instruction
which can be probed gets its breakpoint. So a probe always fires at the instruction that the guest wrote last. (Code
that stores to its own page and stays in it by direct branches runs unchanged until it leaves the page; kernels
synchronise before they execute what they wrote.) A kernel writes a page hundreds of times, and few functions at a
time: those whose bytes have not changed are not decoded again.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.derive import disjoint
from kinst.rewriter.naming.refusals import Refusals
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.patched.block_sites import BlockSites
from kinst.runtime.patched.moved_trampolines import MovedTrampolines
from kinst.runtime.patched.shadows.plain_sites import LONGEST, PageText, PlainSites
from kinst.runtime.patched.shadows.shadow_page import PAGE, ShadowPage, Text, around
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.patched.written_sites import WrittenSites
from kinst.runtime.trap.trap import Hit, Site
from kinst.targets.columns import unique
from kinst.targets.instruction import Instructions, Reason
from kinst.targets.kernels.patched_at_boot import boot_patched_ranges, writes_while_it_runs
from kinst.targets.manifest.packed import Method

SHADOW_FRAMES: Final = 1 << 45  # physical pages that no guest uses, like `address_space.TRAMPOLINE_FRAMES`
# Reasons for which a row is refused because of code in other functions: then all are decoded together.
_BY_OTHERS: Final = (Reason.DATA, Reason.OTHER_MODE)
# A page with less of the image has other content by now: kernels free the memory of code that runs only once.
_LEAST_ALIKE: Final = 0.25
_NO_ROWS: Final = np.zeros(0, np.intp)


class DeferredSites:
    """A handler for `TrapPath.dtrace_invop_add`, and the watcher of the pages that hold deferred sites, or will."""

    def __init__(
        self,
        sites: SiteTable,
        loaded: Loaded,
        system: System,
        trampolines: MovedTrampolines | None,
        blocks: BlockSites | None,
        distances: Sequence[int],
        plain_hit: Callable[[int, int], Hit],
    ) -> None:
        """Watch the pages from now on.

        Args:
            sites: the image's.
            loaded: where it was loaded.
            system: the machine.
            trampolines: for machines on which a slot serves one address only.
            blocks: counts sites where blocks begin.
            distances: how far the image's code is from its link addresses, where it runs.
            plain_hit: adds a site (its row) at an address, where its instruction is the image's; returns its hit.
        """
        self._blocks = blocks
        if blocks is not None:
            blocks.on_moved(self.refresh)
            blocks.on_armed(self._armed)
        self._sites, self._distances, self._plain_hit = sites, distances, plain_hit
        self._loaded = loaded
        self._trampolines = trampolines
        self._system = system
        self._dissector = dissector(system.arch)
        self._space, self._memory = system.space, system.memory
        self._engine, self._trap = system.engine, system.trap
        self._written = WrittenSites(sites.manifest.sites, sites, self._dissector, system)
        self._now, self._target = self._written.now, self._written.target
        self._reason = self._written.reason  # of wanted sites: why they are not armed
        self._is_listed = sites.manifest.is_deferred
        self._is_armed = np.zeros(len(self._now), np.bool_)
        self._out_of_reach: list[tuple[int, np.void]] = []  # (row, original) of sites that can have no trampoline
        self._hits: dict[int, list[int]] = {}  # row -> the addresses at which the site was hit
        self._slots: dict[tuple[int, bytes], int] = {}  # trampolines, by address and instruction
        self._plain = PlainSites(sites, loaded, system.memory)
        self._takes_plain = writes_while_it_runs(loaded.image)
        self._dormant: dict[int, int] = {}  # pages with breakpoints in memory, and their distances
        self._pages = self._find_pages(np.flatnonzero(sites.manifest.is_deferred))
        self._order: list[int] = []  # pages that have frames
        self._frames: dict[int, int] = {}
        most = self._plain.pages_of(np.arange(len(self._now))) if self._takes_plain else self._pages
        if most:
            self._memory.add_ram(SHADOW_FRAMES, len(most.keys() | self._pages.keys()) * PAGE)
            self._space.watch(self)

    @classmethod
    def are_for(cls, sites: SiteTable, loaded: Loaded, system: System, *, may_watch: bool) -> bool:
        """Whether an image needs them: it writes to its own code. One without deferred sites does if pages are watched
        for no other image so far, nor will be (`may_watch`): there is one watcher."""
        if sites.manifest.is_deferred.any():
            return True
        is_free = may_watch and system.space.watched.is_free()
        return is_free and bool(len(sites.manifest.sites)) and writes_while_it_runs(loaded.image)

    def _find_pages(self, rows: NDArray[np.intp]) -> dict[int, ShadowPage]:
        """The pages of listed sites by number, in the order of their sites."""
        pages: dict[int, list[NDArray[np.intp]]] = {}
        distances: dict[int, int] = {}
        bias, addresses = self._loaded.bias, self._now["address"][rows]
        for virtual, physical, size in self._loaded.segments:
            inside = np.flatnonzero(addresses - np.uint64((virtual - bias) % 2**64) < np.uint64(size))
            places = addresses[inside] + np.uint64((physical - virtual + bias) % 2**64)
            for last_byte in (0, LONGEST - 1):
                numbers = (places + np.uint64(last_byte)) >> np.uint64(12)
                cuts = np.flatnonzero(np.diff(numbers)) + 1
                for part, group in zip(np.split(numbers, cuts), np.split(rows[inside], cuts), strict=True):
                    if len(group):
                        pages.setdefault(int(part[0]), []).append(group)
                        distances[int(part[0])] = physical - virtual + bias
        found = {page: unique(np.concatenate(rows)) for page, rows in sorted(pages.items())}
        return {
            page: ShadowPage(distances[page], rows, _NO_ROWS, self._shared(page, found)) for page, rows in found.items()
        }

    def _shared(self, page: int, rows: dict[int, NDArray[np.intp]]) -> tuple[int, ...]:
        """The functions of a page's rows that are also in a page next to it."""
        near = [rows[number] for number in (page - 1, page + 1) if number in rows]
        both = rows[page][np.isin(rows[page], np.concatenate(near))] if near else rows[page][:0]
        return tuple(unique(self._now["function"][both]).tolist())

    # -- the watcher ---------------------------------------------------------------------------------------------------

    @property
    def pages(self) -> frozenset[int]:
        """Numbers of the physical pages that are watched."""
        return frozenset(self._pages.keys() | self._dormant.keys())

    def read(self, number: int) -> None:
        """The guest is about to load from a page."""
        if number in self._dormant:
            self._wake()

    def written(self, number: int) -> None:
        """The guest is about to store to a page."""
        self.read(number)
        page = self._page(number)
        if not page.is_open.value:
            page.is_open.value = page.asks.value = 1
            self._engine.flush_tlb()  # the next fetch must miss: the shadow is out of date

    def frame(self, number: int, address: int) -> int:
        """The number of the page to execute instead of `number`, which is about to be fetched at a virtual address."""
        page = self._page(number)
        if page.is_open.value:
            page.is_open.value = 0
            self._engine.flush_tlb()  # the next store must miss: it would change what is executed unseen
            for near in self._near(number):  # an instruction across the bounds has changed for both pages
                near.make_stale()
        if page.is_stale:
            self._show(number, page, address)
        page.asks.value = 0
        if not page.has_rows:
            return number
        page.fetch()
        return self._frames[number]

    def asks(self, number: int) -> int:
        """See `kinst.runtime.machine.watching.page_watchers.CodeWatcher`."""
        return ctypes.addressof(self._page(number).asks)

    def opened(self, number: int) -> int:
        """See `asks`."""
        return ctypes.addressof(self._page(number).is_open)

    def _page(self, number: int) -> ShadowPage:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = ShadowPage(self._dormant[number], _NO_ROWS, _NO_ROWS)
        return page

    def _near(self, number: int) -> list[ShadowPage]:
        """A page and its neighbours, which can share an instruction with it."""
        return [self._pages[near] for near in (number - 1, number, number + 1) if near in self._pages]

    def real(self, physical: int) -> int:
        """The physical address that the guest knows, for one in a shadow; any other address as it is."""
        index = (physical - SHADOW_FRAMES) // PAGE
        return physical if index < 0 else self._order[index] * PAGE | physical % PAGE

    def refresh(self) -> None:
        """Make every shadow again before it is executed, after other probes were enabled or memory was armed."""
        for page in self._pages.values():
            page.forget()
        self._hits.clear()
        self._dormant = self._plain.pages() if self._takes_plain else {}
        if self._pages or self._dormant:
            self._space.watch(self)

    def _armed(self, rows: NDArray[np.intp]) -> None:
        """Some sites got breakpoints in memory while the guest runs."""
        found = self._plain.pages_of(rows) if self._takes_plain else {}
        for number in found.keys() & self._pages.keys():
            self._pages[number].make_stale()
        is_new = bool(found.keys() - self._dormant.keys())
        self._dormant |= found
        if is_new:
            self._space.watch(self)
        elif found:
            self._engine.flush_tlb()

    def _wake(self) -> None:
        """Breakpoints leave memory, since the guest looks there: from now on their pages are executed as shadows."""
        distances, self._dormant = self._dormant, {}
        for number, rows in self._plain.take().items():
            self._is_armed[rows], self._reason[rows] = self._sites.is_wanted[rows], Reason.NONE
            page = self._pages.setdefault(number, ShadowPage(distances[number], _NO_ROWS, _NO_ROWS))
            if page.text is not None:
                page.text.forget(self._now["address"][rows])
            page.join(rows)
        self._remember_hits()
        self._engine.flush_tlb()  # the next fetch must miss: what is executed is elsewhere

    def _remember_hits(self) -> None:
        """A hit that was made for a breakpoint in memory serves as long as its instruction is there."""
        for pc in self._trap.hits:
            for row in (self._sites.row_at(pc - moved) for moved in self._distances):
                if row is not None and pc not in self._hits.setdefault(row, []):
                    self._hits[row].append(pc)

    @cached_property
    def _listed(self) -> NDArray[np.uint64]:
        return boot_patched_ranges(self._loaded.image)

    def passed_over(self) -> tuple[Refusals, int]:
        """The enabled sites that cannot be probed now, with reasons, and how many enabled sites there are; in executed
        pages only."""
        fetched = [rows for page in self._pages.values() if page.was_fetched for rows in (page.rows, page.plain)]
        rows = unique(np.concatenate(fetched)) if fetched else _NO_ROWS
        rows = rows[self._sites.is_wanted[rows]]
        found = rows[(self._reason[rows] != Reason.NONE) & (self._reason[rows] != Reason.BREAKPOINT)]
        functions = self._now["function"][found].view(np.int32)
        reasons = self._reason[found]
        return Refusals(self._now["address"][found], functions, reasons, np.zeros_like(reasons)), len(rows)

    # -- showing -------------------------------------------------------------------------------------------------------

    def _show(self, number: int, page: ShadowPage, address: int) -> None:
        page.begin()
        if not page.has_rows:
            return
        content = self._memory.read(number * PAGE, PAGE)
        whole = content + b"".join(around(self._memory, number))
        if whole == page.content:  # written with the same bytes: the shadow and its translation are right
            return
        page.show(whole)
        is_ours = self._is_ours(number * PAGE - page.distance, content)
        if len(page.rows):
            self._decode(page, is_ours=is_ours)
        self._look_at_plain(number, page, is_ours=is_ours)
        shadow, armed = np.frombuffer(content, np.uint8).copy(), self._is_armed[page.rows]
        rows = page.rows
        if self._blocks is not None:
            rows = rows[~self._blocks.shown(rows, self._now["original"][rows], armed)]
        rows = np.concatenate([rows, page.plain])
        self._arm(shadow, number * PAGE - page.distance, rows[self._is_armed[rows]])
        self._memory.write(self._frame_of(number) * PAGE, shadow.data)
        if page.was_fetched:  # else nothing of it was translated
            self._engine.forget_code(address & -PAGE, PAGE)

    def _frame_of(self, number: int) -> int:
        """The page that is executed in place of one."""
        if number not in self._frames:
            self._frames[number] = SHADOW_FRAMES // PAGE + len(self._order)
            self._order.append(number)
        return self._frames[number]

    def _is_ours(self, link: int, content: bytes) -> bool:
        """Whether a page still holds the image's code, apart from what was patched in it."""
        for segment in self._loaded.image.segments:
            start, end = max(link, segment.address), min(link + PAGE, segment.address + segment.file_size)
            if start < end:
                at = segment.offset + start - segment.address
                linked = self._loaded.image.data[at : at + end - start]
                now = np.frombuffer(content, np.uint8)[start - link : end - link]
                return bool(np.mean(linked == now) >= _LEAST_ALIKE)
        return False

    def _decode(self, page: ShadowPage, *, is_ours: bool) -> None:
        """Update the records of the page's listed sites with the instructions that are there now."""
        texts = self._functions(page.rows, page.distance) if is_ours else []
        rows, texts = self._changed(page, texts)
        if self._take_over(rows, texts, is_ours=is_ours):
            page.noted.clear()  # a change of any function may change the verdict

    def _look_at_plain(self, number: int, page: ShadowPage, *, is_ours: bool) -> None:
        """The same for its other sites, where the guest seldom writes: what has the bytes that it had is not
        decoded."""
        rows = page.plain
        if not len(rows):
            return
        if page.text is None:
            page.know(PageText(self._loaded.image, number * PAGE - page.distance, self._listed))
            assert page.text is not None
        records = self._sites.manifest.sites[rows]
        text = self._text(number, page)
        changed = rows[page.text.changed(text, records["address"], records["size"])]
        if not is_ours:
            page.text.forget(records["address"])
            changed = rows
        if len(changed):
            self._take_over(changed, self._functions(changed, page.distance) if is_ours else [], is_ours=is_ours)
            self._as_planned(changed)
        self._is_armed[rows] = self._sites.is_wanted[rows] & (self._reason[rows] == Reason.NONE) & is_ours

    def _as_planned(self, rows: NDArray[np.intp]) -> None:
        """A site with the image's instruction is what it was planned to be, whatever is around it now."""
        planned = self._sites.manifest.sites
        is_there = (self._reason[rows] != Reason.NO_BOUNDARY) & (self._reason[rows] != Reason.BREAKPOINT)
        same = rows[is_there & (self._now["original"][rows] == planned["original"][rows])]
        self._now[same], self._reason[same] = planned[same], Reason.NONE

    def _text(self, number: int, page: ShadowPage) -> NDArray[np.uint8]:
        """The guest's bytes of a page and next to it, zeros where there are none."""
        before, behind = around(self._memory, number)
        whole = before.rjust(LONGEST, b"\0") + self._memory.read(number * PAGE, PAGE) + behind.ljust(LONGEST, b"\0")
        text = np.frombuffer(whole, np.uint8).copy()
        self._sites.show_pristine(number * PAGE - page.distance - LONGEST, text)
        return text

    def _take_over(self, rows: NDArray[np.intp], texts: list[Text], *, is_ours: bool) -> bool:
        """Update the records of some sites from the code of functions. Returns whether other code may change that."""
        before = self._now["original"][rows].copy()
        self._is_armed[rows] = False
        self._reason[rows] = Reason.NO_BOUNDARY if is_ours else Reason.NONE
        by_others = False
        for text in texts:
            found = self._dissector.dissect(text.code, text.address, text.ranges)
            self._note(rows, text.code, text.address, found)
            by_others |= bool(np.isin(found.reason, _BY_OTHERS).any())
        # A hit was made for the instruction that was there: the next breakpoint makes another.
        changed = (self._now["original"][rows] != before) | ~self._is_armed[rows]
        for row in rows[changed].tolist():
            self._trap.remove(self._hits.pop(row, ()))
        return by_others

    def _functions(self, rows: NDArray[np.intp], distance: int) -> list[Text]:
        """The code of the functions that hold some sites."""
        numbers = unique(self._now["function"][rows])
        functions = self._sites.manifest.functions[numbers]
        found = []
        for some in disjoint(functions["address"], functions["size"]):
            start = functions["address"][some]
            first, last = int(start[0]), int(start[-1] + functions["size"][some[-1]])
            region = self._memory.find(first + distance, last - first)
            if region is None:
                continue
            text = np.frombuffer(self._memory.read(first + distance, last - first), np.uint8).copy()
            self._sites.show_pristine(first, text)
            low = (start - start[0]).astype(np.int64)
            ranges = np.stack([low, low + functions["size"][some].astype(np.int64)], axis=1)
            found.append(Text(text, first, ranges, numbers[some]))
        return found

    def _changed(self, page: ShadowPage, texts: list[Text]) -> tuple[NDArray[np.intp], list[Text]]:
        """The rows and the functions whose bytes are not those that were noted; notes their bytes.

        This takes functions that do not overlap, so that a row belongs to one. A function with an instruction across
        the page's bounds has rows in two pages, either of which may have changed: it is always decoded.
        """
        if len(texts) != 1:
            page.noted.clear()
            return page.rows, texts
        text = texts[0]
        code = text.code.tobytes()
        pieces = [code[start:end] for start, end in text.ranges.tolist()]
        numbers = text.functions.tolist()
        is_new = np.array([page.noted.get(at) != piece for at, piece in zip(numbers, pieces, strict=True)], np.bool_)
        page.note(dict(zip(numbers, pieces, strict=True)))
        for number in page.shared:
            page.noted.pop(number, None)
        rows = page.rows[np.isin(self._now["function"][page.rows], text.functions[~is_new], invert=True)]
        return rows, [replace(text, ranges=text.ranges[is_new])] if is_new.any() else []

    def _note(self, rows: NDArray[np.intp], code: NDArray[np.uint8], address: int, found: Instructions) -> None:
        rows = self._written.note(rows, code, address, found)
        for row, original in self._out_of_reach:
            if row in rows and self._now["original"][row] == original:
                self._reason[row] = Reason.OUT_OF_REACH
        self._is_armed[rows] = self._sites.is_wanted[rows] & (self._reason[rows] == Reason.NONE)

    def _arm(self, shadow: NDArray[np.uint8], link: int, rows: NDArray[np.intp]) -> None:
        """Put the breakpoints of sites into a page's bytes from a link address on."""
        sizes = self._now["size"][rows]
        for size in unique(sizes).tolist():
            armed = np.frombuffer(self._sites.armed_bytes[size], np.uint8)
            starts = (self._now["address"][rows[sizes == size]] - np.uint64(link)).view(np.int64)
            places = starts[:, None] + np.arange(len(armed))
            inside = (places >= 0) & (places < PAGE)
            shadow[places[inside]] = np.broadcast_to(armed, places.shape)[inside]

    # -- hits ----------------------------------------------------------------------------------------------------------

    def _row(self, pc: int) -> tuple[int, int] | None:
        """The row of the site at an address, and its physical page, if it is executed as a shadow; else None."""
        try:
            # Sites are found by the physical address, since a kernel runs its code by several virtual ones.
            physical = self._space.real_physical(pc)
        except PageFault:
            return None
        page = self._pages.get(physical // PAGE)
        row = None if page is None else self._sites.row_at(physical - page.distance)
        return None if row is None or not self._sites.is_deferred[row] else (row, physical // PAGE)

    def claim(self, pc: int) -> Hit | None:
        """The hit of a breakpoint at `pc`; None if it is not that of a site here."""
        found = self._row(pc)
        if found is None or not self._is_armed[found[0]]:
            return None
        row, number = found
        if not self._is_listed[row] and self._now[row] == self._sites.manifest.sites[row]:
            self._hits.setdefault(row, []).append(pc)
            return self._plain_hit(row, pc)
        record = self._now[row]
        target = int(self._target[row])
        site = self._sites.site(row, record=record, target=target)
        if site.emulation is None:
            slot = self._trampoline(row, pc, site.trampoline)
            if slot is None:
                site = self._sites.site(row, method=Method.EMULATE, record=record, target=target)
            else:
                site = replace(site, trampoline=slot)
            if slot is None and site.emulation is None:
                return self._skip(row, number)
        self._hits.setdefault(row, []).append(pc)
        self._trap.add(site, pc)
        return self._trap.hits[pc]

    def at_guests(self, pc: int) -> Site | None:
        """The site at which the guest has a breakpoint of its own, which is what the CPU has executed at `pc`; None: no
        probe of ours is there."""
        found = self._row(pc)
        if found is None or self._reason[found[0]] != Reason.BREAKPOINT or not self._sites.is_wanted[found[0]]:
            return None
        row = found[0]
        if not self._is_listed[row]:
            return self._sites.site(row)
        return self._sites.site(row, record=self._now[row], target=int(self._target[row]))

    def _skip(self, row: int, number: int) -> Hit:
        """The hit of a site whose instruction can have no trampoline: it removes the breakpoint, and the guest executes
        the instruction as if there had been none."""
        self._out_of_reach.append((row, self._now["original"][row]))

        def again(pc: int) -> None:
            for near in self._near(number):
                near.forget()
            self._engine.flush_tlb()
            system = self._system
            system.current.registers.set(system.arch.registers[system.arch.pc], pc)
            system.yield_cpu()

        return again

    def _trampoline(self, row: int, pc: int, own: int) -> int | None:
        """A trampoline with the instruction that is at a site now; None if it can have none."""
        record = self._now[row]
        instruction = record["original"].tobytes()[: int(record["size"])]
        if self._trampolines is None:
            return self._written.fill(row, own)
        # By the address as well: a slot that jumps back serves one. And by the instruction: code is switched back and
        # forth.
        slot = self._slots.get((pc, instruction)) or self._trampolines.slot(int(record["kind"]), instruction, pc)
        if slot is not None:
            self._slots[pc, instruction] = slot
        return slot
