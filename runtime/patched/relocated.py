"""A breakpoint where the manifest has no site -> the site it is a copy of, in an image that moved its own text.

U-Boot copies itself to the top of RAM, with its breakpoints; kernels run their first code at physical addresses. The
bytes around the breakpoint are compared with those around every site of the loaded image, without the words that
relocations change. If they match one site, the code is a copy, and its distance gives all other sites.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.address_space import AddressSpace
from kinst.runtime.machine.exception_model import ExceptionModel
from kinst.runtime.machine.loaded import Loaded
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.patched.moved_trampolines import MovedTrampolines
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.trap.trap import Hit, Site, TrapPath
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.elf.sections import Segment
from kinst.targets.errors import MachineError
from kinst.targets.image import Image
from kinst.targets.manifest import Method

_REACHES: Final = (32, 1 << 8, 1 << 11, 1 << 14, 1 << 17)  # bytes on each side that must match
_FIRST_LOOK: Final = 24
_PAGE: Final = 4096


class RelocatedCopies:
    """A handler for `TrapPath.dtrace_invop_add` that knows every site, at its own address and in copies."""

    def __init__(
        self,
        sites: SiteTable,
        loaded: Loaded,
        trap: TrapPath,
        trampolines: MovedTrampolines | None,
        model: ExceptionModel,
        space: AddressSpace,
    ) -> None:
        """`trampolines` are for machines on which the image's own do not serve copies."""
        self._sites = sites
        self._loaded = loaded
        self._trap = trap
        self._trampolines = trampolines
        self._space, self._fetch = space, space.fetch  # reads instruction bytes as they are in memory, with armed sites
        self._breakpoints = sorted(set(model.armed.values()), key=len)
        self._distances: list[int] = [loaded.bias]
        self._texts: list[_Text] = []
        self._unknown: set[int] = set()

    @property
    def distances(self) -> Sequence[int]:
        """The distances, in bytes, from the link address: first that of what was loaded, then those of the copies
        found."""
        return self._distances

    def pristine(self, address: int, content: bytes) -> bytes:
        """Bytes read at a virtual address, with the original ones at armed sites, also in copies."""
        for distance in self._distances:
            content = self._sites.pristine(address - distance, content)
        return content

    def claim(self, pc: int) -> Hit | None:
        """What to do at a breakpoint at `pc`; None if it is the guest's own."""
        for known in self._distances:
            hit = self._hit(pc, known)
            if hit is not None:
                return hit
        distance = self._find(pc)
        if distance is None:
            return None
        self._distances.append(distance)
        return self._hit(pc, distance)

    def _hit(self, pc: int, distance: int) -> Hit | None:
        row = self._sites.row_at(pc - distance)
        if row is None or not self._sites.is_armed[row]:
            return None
        is_moved = distance != (self._loaded.bias if self._trampolines is None else 0)
        site = self._moved(row, pc, distance) if is_moved else self._sites.site(row)
        self._trap.add(site, pc)
        return self._trap.hits[pc]

    def _moved(self, row: int, pc: int, distance: int) -> Site:
        record = self._sites.manifest.sites[row]
        kind, size = int(record["kind"]), int(record["size"])
        instruction = self._sites.pristine(pc - distance, self._fetch(pc, size))
        site = self._sites.site(row, instruction)
        if site.emulation is not None or self._trampolines is None:
            return site
        slot = self._trampolines.slot(kind, instruction, pc)
        if slot is not None:
            return replace(site, trampoline=slot)
        site = self._sites.site(row, instruction, Method.EMULATE)
        if site.emulation is None:
            raise MachineError(
                f"the image moved its text: {instruction.hex()} at {pc:#x} can have no trampoline there: its operand "
                "is out of reach, or there is no room below those of the file (--trampoline-base moves them)"
            )
        return site

    def _find(self, pc: int) -> int | None:
        """How far the code at `pc` is from where it was linked, in bytes; None if it is no copy."""
        if not any(self._holds(pc, armed) for armed in self._breakpoints):
            return None  # the guest's own
        if pc in self._unknown:
            return None
        link = self._aliased(pc)
        link = self._link_address(pc) if link is None else link
        if link is None or self._sites.row_at(link) is None:
            self._unknown.add(pc)
            return None
        return pc - link

    def _holds(self, pc: int, content: bytes) -> bool:
        try:
            return self._fetch(pc, len(content)) == content
        except PageFault:
            return False

    def _aliased(self, pc: int) -> int | None:
        """The link address, if `pc` is another address of the memory that the image was loaded to: a kernel that runs
        at physical addresses, or maps itself elsewhere. Otherwise None."""
        physical = self._space.real_physical(pc)
        for virtual, loaded, size in self._loaded.segments:
            if loaded <= physical < loaded + size:
                link = physical - loaded + virtual - self._loaded.bias
                row = self._sites.row_at(link)
                return link if row is not None and self._sites.is_armed[row] else None
        return None

    def _link_address(self, pc: int) -> int | None:
        """The link address of the only site of which the code around `pc` can be a copy; None if there is no such site.
        Images nearly always move by whole pages."""
        addresses = self._sites.manifest.sites["address"][self._sites.is_armed]
        in_page = np.uint64(pc % _PAGE)
        for candidates in (addresses[addresses % np.uint64(_PAGE) == in_page], addresses):
            found = self._narrowed(pc, candidates) if len(candidates) else None
            if found is not None:
                return found
        return None

    def _narrowed(self, pc: int, candidates: NDArray[np.uint64]) -> int | None:
        """The one candidate whose surroundings match. If every instruction is probed, code looks alike nearly
        everywhere: then more and more of it is compared."""
        for reach in _REACHES:
            before = np.frombuffer(self._bytes_before(pc, reach), np.uint8)
            around = np.concatenate([before, np.frombuffer(self._bytes_after(pc, reach), np.uint8)])
            parts = [text.matching(candidates, around, len(before)) for text in self._loaded_texts()]
            candidates = np.concatenate(parts)
            if len(candidates) < 2:
                return int(candidates[0]) if len(candidates) else None
        return None

    def _bytes_after(self, pc: int, reach: int) -> bytes:
        """At most `reach` bytes from `pc` on, as far as there is memory."""
        parts, at = [], pc
        try:
            while at < pc + reach:
                size = min(pc + reach, (at | _PAGE - 1) + 1) - at
                parts.append(self._fetch(at, size))
                at += size
        except PageFault:
            pass
        return b"".join(parts)

    def _bytes_before(self, pc: int, reach: int) -> bytes:
        parts, end = [], pc
        try:
            while end > pc - reach:
                start = max(pc - reach, (end - 1) & -_PAGE)
                parts.append(self._fetch(start, end - start))
                end = start
        except PageFault:
            pass
        return b"".join(reversed(parts))

    def _loaded_texts(self) -> list["_Text"]:
        """The segments with sites, as they were loaded and armed."""
        if not self._texts:
            image, addresses = self._loaded.image, self._sites.manifest.patched["address"]
            for segment in image.segments:
                inside = addresses - np.uint64(segment.address) < np.uint64(segment.file_size)
                if segment.kind == PT_LOAD and inside.any():
                    content = image.data[segment.offset : segment.offset + segment.file_size].copy()
                    self._sites.show_armed(segment.address, content)
                    self._texts.append(_Text(segment.address, content, _written(image, segment)))
        return self._texts


@dataclass(frozen=True, slots=True)
class _Text:
    """Bytes from a link address on. `is_written` marks those that relocations change when the image moves."""

    address: int
    content: NDArray[np.uint8]
    is_written: NDArray[np.bool_]

    def matching(self, candidates: NDArray[np.uint64], around: NDArray[np.uint8], before: int) -> NDArray[np.uint64]:
        """The candidates that match `around`, whose byte number `before` is the candidate's first."""
        inside = candidates[candidates - np.uint64(self.address) < np.uint64(len(self.content))]
        starts = (inside - np.uint64(self.address)).astype(np.int64) - before
        for at in range(before, min(before + _FIRST_LOOK, len(around))):  # in bulk, since there may be millions
            fits = starts + at < len(self.content)
            places = np.where(fits, starts + at, 0)
            alike = fits & ((self.content[places] == around[at]) | self.is_written[places])
            inside, starts = inside[alike], starts[alike]
        agrees = [self._agrees(start, around) for start in starts.tolist()]
        return inside[np.array(agrees, np.bool_)]

    def _agrees(self, start: int, around: NDArray[np.uint8]) -> bool:
        cut = max(0, -start)  # what comes before the segment may be anything
        mine = slice(start + cut, start + len(around))
        theirs = around[cut : cut + len(self.content[mine])]
        return bool(((self.content[mine] == theirs) | self.is_written[mine]).all())


def _written(image: Image, segment: Segment) -> NDArray[np.bool_]:
    is_written = np.zeros(segment.file_size, np.bool_)
    for address, size in image.relocated.tolist():
        start = address - segment.address
        if -size < start < segment.file_size:
            is_written[max(0, start) : start + size] = True
    return is_written
