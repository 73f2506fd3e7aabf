"""A module that the guest loads as it is in its file -> breakpoints in memory, written when it is there.

Its symbol table in memory is that of its file, with addresses: so it is known where each section is, and that it is the
same file. What relocations and the kernel have written by then is decoded where it is. At any other site memory must
have the file's bytes. A site of which that is not so is left alone, and counted.
"""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.derive import disjoint
from kinst.runtime.patched.moved_trampolines import MovedTrampolines
from kinst.runtime.patched.written_sites import WrittenSites
from kinst.runtime.trap.trap import Hit
from kinst.targets.errors import MachineError
from kinst.targets.instruction import Reason, Verdict
from kinst.targets.manifest.packed import Method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kinst.runtime.machine.system import System
    from kinst.runtime.patched.sites import SiteTable
    from kinst.runtime.trap.trap import Site
    from kinst.targets.elf.sections import CodeRegion
    from kinst.targets.image import Image
    from kinst.targets.kernels.kernel_module import KernelModule

_PAGE: Final = 4096
_WIDTH: Final = 16  # bytes that are kept of each instruction
_NOWHERE: Final = np.uint64(0)


def distances_of(image: "Image", module: "KernelModule") -> dict[int, int] | None:
    """How far each section of a module's file is, in bytes, from its address in the file; by the section's index. None:
    another file was loaded."""
    ours, theirs = image.symbols, module.symbols
    count = len(theirs)
    if count > len(ours) or not count:
        return None
    if (ours.section[:count] != theirs.section).any() or (ours.size[:count] != theirs.size).any():
        return None
    if ours.names(np.arange(count)) != theirs.names(np.arange(count)):
        return None
    indexes = {one.index for one in image.sections if one.address}
    found: dict[int, int] = {}
    for index, ours_at, theirs_at in zip(
        theirs.section.tolist(), ours.address[:count].tolist(), theirs.address.tolist(), strict=True
    ):
        if index in indexes:
            found.setdefault(index, theirs_at - ours_at)
    return found


class LoadedSites:
    """The sites of one module: a handler for `TrapPath.dtrace_invop_add`, and bytes for `System.attach_original`."""

    def __init__(
        self,
        table: "SiteTable",
        image: "Image",
        system: "System",
        trampolines: MovedTrampolines | None,
        is_live: "Callable[[int], bool]",
    ) -> None:
        """It is not loaded.

        Args:
            table: its sites, at their addresses in the file.
            image: the file.
            system: the machine.
            trampolines: for machines on which those of the file serve one address only.
            is_live: whether the module of a struct module is initialised.
        """
        self.table, self.image = table, image
        self.has_arrived = False  # whether it ever was in memory
        self.module: KernelModule | None = None  # None: it is not there now
        self._system, self._trampolines, self._is_live = system, trampolines, is_live
        self._space, self._memory = system.space, system.memory
        self._dissector = dissector(system.arch)
        count = len(table.manifest.sites)
        self._written = self._as_in_file()  # with what is in memory; addresses are those in the file
        self._place = np.zeros(count, np.uint64)  # where each is; 0: nowhere
        self._is_armed = np.zeros(count, np.bool_)  # which have a breakpoint in memory
        self._rows: dict[int, int] = {}  # by place
        self._hits: dict[int, Hit] = {}
        self._distances: dict[int, int] = {}

    # -- coming and going ---------------------------------------------------------------------------------------------

    def arrive(self, module: "KernelModule", distances: dict[int, int]) -> None:
        """The guest has loaded it, and none of its code has run. Breakpoints are written where probes are enabled."""
        self.leave()
        self.module, self._distances, self.has_arrived = module, distances, True
        sites = self.table.manifest.sites
        self._written = self._as_in_file()
        self._place = np.zeros(len(sites), np.uint64)
        for region, distance in self._regions():
            inside = self._inside(region)
            self._place[inside] = sites["address"][inside] + np.uint64(distance % (1 << 64))
            self._look(region, distance, inside)
        self._written.reason[self._place == _NOWHERE] = Reason.NO_FUNCTION
        self._rows = {at: row for row, at in enumerate(self._place.tolist()) if at}
        self._update()

    def pass_over(self) -> None:
        """A module of its name was loaded that is not the file's: it stays as it is."""
        self.leave()
        self.has_arrived = True

    def leave(self) -> None:
        """It is about to be freed: memory gets its own bytes back."""
        if self.module is not None:
            self._write(self._is_armed.copy(), is_armed=False)
        self.module = None
        self._rows, self._distances = {}, {}
        self._hits.clear()

    def _as_in_file(self) -> WrittenSites:
        return WrittenSites(self.table.manifest.sites, self.table, self._dissector, self._system)

    def _regions(self) -> "Iterator[tuple[CodeRegion, int]]":
        """The sections of code that are in memory, and how far they are from their addresses in the file."""
        indexes = {one.address: one.index for one in self.image.sections if one.address}
        for region in self.image.code_regions:
            distance = self._distances.get(indexes.get(region.address, -1))
            if distance is not None:
                yield region, distance

    def _inside(self, region: "CodeRegion") -> NDArray[np.intp]:
        addresses = self.table.manifest.sites["address"]
        return np.flatnonzero(addresses - np.uint64(region.address) < np.uint64(region.size))

    # -- what is there ------------------------------------------------------------------------------------------------

    def _look(self, region: "CodeRegion", distance: int, rows: NDArray[np.intp]) -> None:
        """Compare sites in a section with memory, and decode those that something else has written."""
        if not len(rows):
            return
        code = np.frombuffer(self._space.fetch(region.address + distance, region.size), np.uint8)
        records = self.table.manifest.sites[rows]
        is_deferred = records["verdict"] == Verdict.DEFER
        self._written.reason[rows[~is_deferred & ~_alike(records, code, region.address)]] = Reason.NO_BOUNDARY
        deferred = rows[is_deferred]
        self._written.reason[deferred] = Reason.NO_BOUNDARY
        functions = self.table.manifest.functions[np.unique(self.table.manifest.sites["function"][deferred])]
        for some in disjoint(functions["address"], functions["size"]):
            low = (functions["address"][some] - np.uint64(region.address)).astype(np.int64)
            ranges = np.stack([low, low + functions["size"][some].astype(np.int64)], axis=1)
            found = self._dissector.dissect(code, region.address, ranges)
            self._written.note(deferred, code, region.address, found)

    def left_alone(self) -> str:
        """How many sites of enabled probes have no breakpoint, and why; empty: all have one."""
        reasons = Counter(self._written.reason[self.table.active_sites].tolist())
        found = ((count, Reason(number).text.partition(":")[0]) for number, count in reasons.items() if number)
        return ", ".join(f"{count:,} {text}" for count, text in sorted(found, reverse=True))

    # -- breakpoints --------------------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Take over what is enabled; if it is not in memory, that is done when it is."""
        self.table.arm(self._memory, self._system.trap)
        self._update()

    def _update(self) -> None:
        """Write breakpoints where a probe is enabled, and the module's own bytes at all other sites."""
        self._hits.clear()
        module = self.module
        if module is None:
            return
        wanted = self.table.active_sites & (self._written.reason == Reason.NONE)
        gone = self._freed(module)
        wanted &= ~gone
        self._is_armed &= ~gone
        self._write(self._is_armed & ~wanted, is_armed=False)
        self._write(wanted & ~self._is_armed, is_armed=True)

    def _freed(self, module: "KernelModule") -> NDArray[np.bool_]:
        """Which sites are in memory that was given back when the module was initialised."""
        gone = np.zeros(len(self._place), np.bool_)
        for span in module.init if self._is_live(module.address) else ():
            gone |= self._place - np.uint64(span.start) < np.uint64(len(span))
        return gone

    def _write(self, chosen: NDArray[np.bool_], *, is_armed: bool) -> None:
        """Write to sites where memory has what it should have."""
        for row in np.flatnonzero(chosen).tolist():
            place, size = int(self._place[row]), int(self._written.now["size"][row])
            armed = self.table.armed_bytes[size]
            own = self._written.now["original"][row].tobytes()[: len(armed)]
            before, after = (own, armed) if is_armed else (armed, own)
            self._is_armed[row] = self._exchange(place, before, after) and is_armed

    def _exchange(self, place: int, before: bytes, after: bytes) -> bool:
        """Write bytes at a virtual address if others are there; whether they were."""
        pieces, done = [], 0
        while done < len(after):
            step = min(len(after) - done, _PAGE - (place + done) % _PAGE)
            physical = self._space.observe(place + done)
            if physical is None or self._memory.read(physical, step) != before[done : done + step]:
                return False
            pieces.append((physical, after[done : done + step]))
            done += step
        for physical, content in pieces:
            self._memory.write(physical, content)
        self._system.engine.forget_code(place, len(after))
        return True

    def pristine(self, address: int, content: bytes) -> bytes:
        """Bytes read at a virtual address, with the module's own where breakpoints are."""
        module = self.module
        if module is None or not any(
            span.start < address + len(content) and address < span.stop for span in (*module.core, *module.init)
        ):
            return content
        found = bytearray(content)
        first, end = np.uint64(max(address - _WIDTH, 0)), np.uint64(address + len(content))
        for row in np.flatnonzero(self._is_armed & (self._place >= first) & (self._place < end)).tolist():
            armed = self.table.armed_bytes[int(self._written.now["size"][row])]
            own, start = self._written.now["original"][row].tobytes(), int(self._place[row]) - address
            for index in range(max(0, -start), min(len(armed), len(found) - start)):
                if found[start + index] == armed[index]:
                    found[start + index] = own[index]
        return bytes(found)

    # -- hits ---------------------------------------------------------------------------------------------------------

    def link_address(self, address: int) -> int | None:
        """The address in the file of what is at an address of memory; None: it is none of its code."""
        for region, distance in self._regions():
            if 0 <= address - distance - region.address < region.size:
                return address - distance
        return None

    def claim(self, pc: int) -> Hit | None:
        """The hit of a breakpoint at `pc`; None if it is not this module's."""
        row = self._rows.get(pc)
        if row is None or not self._is_armed[row]:
            return None
        hit = self._hits.get(pc)
        if hit is None:
            # It is not added to the trap path: the memory may have other code later, whose hit comes here as well.
            hit = self._hits[pc] = self._system.trap.prepared(self._site(row, pc), pc)
        return hit

    def _site(self, row: int, pc: int) -> "Site":
        record, target = self._written.now[row], int(self._written.target[row])
        if self.table.manifest.sites["verdict"][row] != Verdict.DEFER:
            site = self.table.site(row)
        else:
            site = self.table.site(row, record=record, target=target)
        if site.emulation is not None:
            return site
        slot = self._slot(row, pc, site.trampoline)
        if slot is not None:
            return replace(site, trampoline=slot)
        site = self.table.site(row, method=Method.EMULATE, record=record, target=target)
        if site.emulation is None:
            text = record["original"].tobytes()[: int(record["size"])].hex()
            raise MachineError(f"{self.image.module}: {text} at {pc:#x} can have no trampoline: its operand is too far")
        return site

    def _slot(self, row: int, pc: int, own: int) -> int | None:
        """A trampoline for the instruction that is at a site."""
        record = self._written.now[row]
        instruction = record["original"].tobytes()[: int(record["size"])]
        if self._trampolines is not None:
            return self._trampolines.slot(int(record["kind"]), instruction, pc)
        if self.table.manifest.sites["verdict"][row] != Verdict.DEFER:
            return own
        return self._written.fill(row, own)


def _alike(records: NDArray[np.void], code: NDArray[np.uint8], address: int) -> NDArray[np.bool_]:
    """For each site, whether `code`, from an address in the file on, has its instruction."""
    padded = np.concatenate([code, np.zeros(_WIDTH, np.uint8)])
    places = (records["address"] - np.uint64(address)).astype(np.int64)
    here = padded[places[:, None] + np.arange(_WIDTH)]
    original = np.ascontiguousarray(records["original"]).view(np.uint8).reshape(-1, _WIDTH)
    is_beyond = np.arange(_WIDTH) >= records["size"][:, None]
    found: NDArray[np.bool_] = ((here == original) | is_beyond).all(axis=1)
    return found
