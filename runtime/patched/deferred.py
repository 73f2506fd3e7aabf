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
from dataclasses import field, replace
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
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.patched.written_sites import WrittenSites
from kinst.runtime.trap.trap import Hit
from kinst.targets.columns import unique
from kinst.targets.instruction import Instructions, Reason
from kinst.targets.manifest.packed import Method
from kinst.targets.values import dataclass

SHADOW_FRAMES: Final = 1 << 45  # physical pages that no guest uses, like `address_space.TRAMPOLINE_FRAMES`
_PAGE: Final = 4096
_LONGEST: Final = 15  # bytes of an instruction, on amd64
# Reasons for which a row is refused because of code in other functions: then all are decoded together.
_BY_OTHERS: Final = (Reason.DATA, Reason.OTHER_MODE)
# A page with less of the image has other content by now: kernels free the memory of code that runs only once.
_LEAST_ALIKE: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Text:
    """Code of functions that do not overlap, as the dissector takes it; `functions` are rows of the manifest."""

    code: NDArray[np.uint8]
    address: int  # where it is linked
    ranges: NDArray[np.int64]
    functions: NDArray[np.intp]


@dataclass(slots=True)
class _Page:
    """One physical page that has deferred sites. `rows` are those whose instruction has a byte in the page."""

    rows: NDArray[np.intp]
    distance: int  # physical - link address
    shared: tuple[int, ...]  # functions of rows that are also in a page next to it
    is_open: bool = False
    is_stale: bool = True
    was_fetched: bool = False
    asks: ctypes.c_uint64 = field(default_factory=lambda: ctypes.c_uint64(1))  # see `CodeWatcher`; 0: shown as it is
    content: bytes = field(default=b"", repr=False)  # the guest's page when the shadow was made
    noted: dict[int, bytes] = field(default_factory=dict, repr=False)  # the bytes of functions that were decoded

    def make_stale(self) -> None:
        """Let the page be shown again before it is executed."""
        self.is_stale, self.asks.value = True, 1

    def forget(self) -> None:
        """Let the page be decoded anew before it is executed, even if its bytes are the same."""
        self.make_stale()
        self.content = b""
        self.noted.clear()


class DeferredSites:
    """A handler for `TrapPath.dtrace_invop_add`, and the watcher of the pages that hold deferred sites."""

    def __init__(
        self,
        sites: SiteTable,
        loaded: Loaded,
        system: System,
        trampolines: MovedTrampolines | None,
        blocks: BlockSites | None,
    ) -> None:
        """Watch the pages from now on. `trampolines` are for machines on which a slot serves one address only; `blocks`
        counts sites where blocks begin."""
        self._blocks = blocks
        if blocks is not None:
            blocks.on_moved(self.refresh)
        self._sites = sites
        self._loaded = loaded
        self._trampolines = trampolines
        self._system = system
        self._dissector = dissector(system.arch)
        self._space, self._memory = system.space, system.memory
        self._engine, self._trap = system.engine, system.trap
        self._rows = np.flatnonzero(sites.manifest.is_deferred)
        self._written = WrittenSites(sites.manifest.sites[self._rows], sites, self._dissector, system)
        self._now, self._target = self._written.now, self._written.target
        self._reason = self._written.reason  # of wanted sites: why they are not armed
        self._is_armed = np.zeros(len(self._rows), np.bool_)
        self._out_of_reach: list[tuple[int, np.void]] = []  # (index, original) of sites that can have no trampoline
        self._number = {row: index for index, row in enumerate(self._rows.tolist())}
        self._hits: dict[int, list[int]] = {}  # index -> the addresses at which the site was hit
        self._slots: dict[tuple[int, bytes], int] = {}  # trampolines, by address and instruction
        self._pages = self._find_pages(self._now["address"])
        self._order = list(self._pages)
        if self._order:
            self._memory.add_ram(SHADOW_FRAMES, len(self._order) * _PAGE)
            self._space.watch(self)
        self._frames = {page: (SHADOW_FRAMES // _PAGE) + index for index, page in enumerate(self._order)}

    def _find_pages(self, addresses: NDArray[np.uint64]) -> dict[int, _Page]:
        """The pages by number, in the order of their sites."""
        pages: dict[int, list[NDArray[np.intp]]] = {}
        distances: dict[int, int] = {}
        bias = self._loaded.bias
        for virtual, physical, size in self._loaded.segments:
            inside = np.flatnonzero(addresses - np.uint64((virtual - bias) % 2**64) < np.uint64(size))
            places = addresses[inside] + np.uint64((physical - virtual + bias) % 2**64)
            for last_byte in (0, _LONGEST - 1):
                numbers = (places + np.uint64(last_byte)) >> np.uint64(12)
                cuts = np.flatnonzero(np.diff(numbers)) + 1
                for part, group in zip(np.split(numbers, cuts), np.split(inside, cuts), strict=True):
                    if len(group):
                        pages.setdefault(int(part[0]), []).append(group)
                        distances[int(part[0])] = physical - virtual + bias
        found = {page: unique(np.concatenate(rows)) for page, rows in sorted(pages.items())}
        return {page: _Page(rows, distances[page], self._shared(page, found)) for page, rows in found.items()}

    def _shared(self, page: int, rows: dict[int, NDArray[np.intp]]) -> tuple[int, ...]:
        """The functions of a page's rows that are also in a page next to it."""
        near = [rows[number] for number in (page - 1, page + 1) if number in rows]
        both = rows[page][np.isin(rows[page], np.concatenate(near))] if near else rows[page][:0]
        return tuple(unique(self._now["function"][both]).tolist())

    # -- the watcher ---------------------------------------------------------------------------------------------------

    @property
    def pages(self) -> frozenset[int]:
        """Numbers of the physical pages that are watched."""
        return frozenset(self._pages)

    def written(self, number: int) -> None:
        """The guest is about to store to a page."""
        page = self._pages[number]
        if not page.is_open:
            page.is_open, page.asks.value = True, 1
            self._engine.flush_tlb()  # the next fetch must miss: the shadow is out of date

    def frame(self, number: int, address: int) -> int:
        """The number of the page to execute instead of `number`, which is about to be fetched at a virtual address."""
        page = self._pages[number]
        if page.is_open:
            page.is_open = False
            self._engine.flush_tlb()  # the next store must miss: it would change what is executed unseen
            for near in self._near(number):  # an instruction across the bounds has changed for both pages
                near.make_stale()
        if page.is_stale:
            self._show(number, page, address)
        page.was_fetched, page.asks.value = True, 0
        return self._frames[number]

    def asks(self, number: int) -> int:
        """See `kinst.runtime.machine.watching.page_watchers.CodeWatcher`."""
        return ctypes.addressof(self._pages[number].asks)

    def _near(self, number: int) -> list[_Page]:
        """A page and its neighbours, which can share an instruction with it."""
        return [self._pages[near] for near in (number - 1, number, number + 1) if near in self._pages]

    def real(self, physical: int) -> int:
        """The physical address that the guest knows, for one in a shadow; any other address as it is."""
        index = (physical - SHADOW_FRAMES) // _PAGE
        return physical if index < 0 else self._order[index] * _PAGE | physical % _PAGE

    def refresh(self) -> None:
        """Make every shadow again before it is executed, after other probes were enabled or memory was armed."""
        for page in self._pages.values():
            page.forget()
        self._hits.clear()
        if self._pages:
            self._engine.flush_tlb()

    def passed_over(self) -> tuple[Refusals, int]:
        """The enabled sites that cannot be probed now, with reasons, and how many enabled sites there are; in executed
        pages only."""
        fetched = [page.rows for page in self._pages.values() if page.was_fetched]
        rows = unique(np.concatenate(fetched)) if fetched else np.zeros(0, np.intp)
        rows = rows[self._sites.is_wanted[self._rows[rows]]]
        found = rows[self._reason[rows] != Reason.NONE]
        functions = self._now["function"][found].view(np.int32)
        reasons = self._reason[found]
        return Refusals(self._now["address"][found], functions, reasons, np.zeros_like(reasons)), len(rows)

    # -- showing -------------------------------------------------------------------------------------------------------

    def _show(self, number: int, page: _Page, address: int) -> None:
        page.is_stale = False
        content = self._memory.read(number * _PAGE, _PAGE)
        around = self._around(number)
        if content + around == page.content:  # written with the same bytes: the shadow and its translation are right
            return
        page.content = content + around
        self._decode(page, is_ours=self._is_ours(number * _PAGE - page.distance, content))
        shadow, armed = np.frombuffer(content, np.uint8).copy(), self._is_armed[page.rows]
        rows = page.rows
        if self._blocks is not None:
            rows = rows[~self._blocks.shown(self._rows[rows], self._now["original"][rows], armed)]
        self._arm(shadow, number * _PAGE - page.distance, rows[self._is_armed[rows]])
        self._memory.write(self._frames[number] * _PAGE, shadow.data)
        if page.was_fetched:  # else nothing of it was translated
            self._engine.forget_code(address & -_PAGE, _PAGE)

    def _around(self, number: int) -> bytes:
        """A page with the bytes next to it that belong to instructions across its bounds."""
        start, end = number * _PAGE, (number + 1) * _PAGE
        parts = (start - _LONGEST, end)
        return b"".join(self._memory.read(at, _LONGEST) for at in parts if self._memory.find(at, _LONGEST) is not None)

    def _is_ours(self, link: int, content: bytes) -> bool:
        """Whether a page still holds the image's code, apart from what was patched in it."""
        for segment in self._loaded.image.segments:
            start, end = max(link, segment.address), min(link + _PAGE, segment.address + segment.file_size)
            if start < end:
                at = segment.offset + start - segment.address
                linked = self._loaded.image.data[at : at + end - start]
                now = np.frombuffer(content, np.uint8)[start - link : end - link]
                return bool(np.mean(linked == now) >= _LEAST_ALIKE)
        return False

    def _decode(self, page: _Page, *, is_ours: bool) -> None:
        """Update the records of the page's sites with the instructions that are there now."""
        texts = self._functions(page) if is_ours else []
        rows, texts = self._changed(page, texts)
        before = self._now["original"][rows].copy()
        self._is_armed[rows] = False
        self._reason[rows] = Reason.NO_BOUNDARY if is_ours else Reason.NONE
        for text in texts:
            found = self._dissector.dissect(text.code, text.address, text.ranges)
            self._note(rows, text.code, text.address, found)
            if np.isin(found.reason, _BY_OTHERS).any():
                page.noted.clear()  # a change of any function may change the verdict
        # A hit was made for the instruction that was there: the next breakpoint makes another.
        changed = (self._now["original"][rows] != before) | ~self._is_armed[rows]
        for index in rows[changed].tolist():
            self._trap.remove(self._hits.pop(index, ()))

    def _functions(self, page: _Page) -> list[_Text]:
        """The code of the functions that hold the page's sites."""
        numbers = unique(self._now["function"][page.rows])
        functions = self._sites.manifest.functions[numbers]
        found = []
        for some in disjoint(functions["address"], functions["size"]):
            start = functions["address"][some]
            first, last = int(start[0]), int(start[-1] + functions["size"][some[-1]])
            region = self._memory.find(first + page.distance, last - first)
            if region is None:
                continue
            text = np.frombuffer(self._memory.read(first + page.distance, last - first), np.uint8).copy()
            self._sites.show_pristine(first, text)
            low = (start - start[0]).astype(np.int64)
            ranges = np.stack([low, low + functions["size"][some].astype(np.int64)], axis=1)
            found.append(_Text(text, first, ranges, numbers[some]))
        return found

    def _changed(self, page: _Page, texts: list[_Text]) -> tuple[NDArray[np.intp], list[_Text]]:
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
        page.noted = dict(zip(numbers, pieces, strict=True))
        for number in page.shared:
            page.noted.pop(number, None)
        rows = page.rows[np.isin(self._now["function"][page.rows], text.functions[~is_new], invert=True)]
        return rows, [replace(text, ranges=text.ranges[is_new])] if is_new.any() else []

    def _note(self, rows: NDArray[np.intp], code: NDArray[np.uint8], address: int, found: Instructions) -> None:
        rows = self._written.note(rows, code, address, found)
        for index, original in self._out_of_reach:
            if index in rows and self._now["original"][index] == original:
                self._reason[index] = Reason.OUT_OF_REACH
        self._is_armed[rows] = self._sites.is_wanted[self._rows[rows]] & (self._reason[rows] == Reason.NONE)

    def _arm(self, shadow: NDArray[np.uint8], link: int, rows: NDArray[np.intp]) -> None:
        """Put the breakpoints of sites into a page's bytes from a link address on."""
        sizes = self._now["size"][rows]
        for size in unique(sizes).tolist():
            armed = np.frombuffer(self._sites.armed_bytes[size], np.uint8)
            starts = (self._now["address"][rows[sizes == size]] - np.uint64(link)).view(np.int64)
            places = starts[:, None] + np.arange(len(armed))
            inside = (places >= 0) & (places < _PAGE)
            shadow[places[inside]] = np.broadcast_to(armed, places.shape)[inside]

    # -- hits ----------------------------------------------------------------------------------------------------------

    def claim(self, pc: int) -> Hit | None:
        """The hit of a breakpoint at `pc`; None if it is not a deferred site's."""
        try:
            # Sites are found by the physical address, since a kernel runs its code by several virtual ones.
            physical = self._space.real_physical(pc)
        except PageFault:
            return None
        page = self._pages.get(physical // _PAGE)
        row = None if page is None else self._sites.row_at(physical - page.distance)
        index = None if row is None else self._number.get(row)
        if row is None or index is None or not self._is_armed[index]:
            return None
        record = self._now[index]
        target = int(self._target[index])
        site = self._sites.site(row, record=record, target=target)
        if site.emulation is None:
            slot = self._trampoline(index, pc, site.trampoline)
            if slot is None:
                site = self._sites.site(row, method=Method.EMULATE, record=record, target=target)
            else:
                site = replace(site, trampoline=slot)
            if slot is None and site.emulation is None:
                return self._skip(index, physical // _PAGE)
        self._hits.setdefault(index, []).append(pc)
        self._trap.add(site, pc)
        return self._trap.hits[pc]

    def _skip(self, index: int, number: int) -> Hit:
        """The hit of a site whose instruction can have no trampoline: it removes the breakpoint, and the guest executes
        the instruction as if there had been none."""
        self._out_of_reach.append((index, self._now["original"][index]))

        def again(pc: int) -> None:
            for near in self._near(number):
                near.forget()
            self._engine.flush_tlb()
            system = self._system
            system.current.registers.set(system.arch.registers[system.arch.pc], pc)
            system.yield_cpu()

        return again

    def _trampoline(self, index: int, pc: int, own: int) -> int | None:
        """A trampoline with the instruction that is at a site now; None if it can have none."""
        record = self._now[index]
        instruction = record["original"].tobytes()[: int(record["size"])]
        if self._trampolines is None:
            return self._written.fill(index, own)
        # By the address as well: a slot that jumps back serves one. And by the instruction: code is switched back and
        # forth.
        slot = self._slots.get((pc, instruction)) or self._trampolines.slot(int(record["kind"]), instruction, pc)
        if slot is not None:
            self._slots[pc, instruction] = slot
        return slot
