"""A breakpoint where the manifest has no site -> the site it is a copy of, in an image that moved its own text.

U-Boot copies itself to the top of RAM, with its breakpoints; kernels run their first code at physical addresses. If the
bytes around the breakpoint match those around one site of the loaded image, the code is a copy, and its distance gives
all other sites.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from kinst.runtime.machine.address_space import AddressSpace
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.patched.moved_trampolines import MovedTrampolines
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.patched.surroundings import Surroundings, texts_of
from kinst.runtime.trap.trap import Hit, Site, TrapPath
from kinst.targets.errors import MachineError
from kinst.targets.manifest.packed import Method

_PAGE: Final = 4096


class RelocatedCopies:
    """A handler for `TrapPath.dtrace_invop_add` that knows every site, at its own address and in copies."""

    def __init__(
        self,
        sites: SiteTable,
        loaded: Loaded,
        distances: list[int],
        trap: TrapPath,
        trampolines: MovedTrampolines | None,
        space: AddressSpace,
        *,
        has_own: bool = True,
    ) -> None:
        """
        Args:
            sites: the image's.
            loaded: where it was loaded.
            distances: how far its copies are from the link address, in bytes: first what was loaded, then those that
                are found, here and by others that share the list.
            trap: the trap path.
            trampolines: for machines on which those of the image do not serve copies.
            space: the guest's memory.
            has_own: whether the image's own trampolines are in memory.
        """
        self._sites = sites
        self._loaded = loaded
        self._trap = trap
        self._trampolines = trampolines
        self._has_own = has_own
        self._space, self._fetch = space, space.fetch  # which gives instruction bytes as they are, with breakpoints
        self._breakpoints = sorted(set(sites.arch.engine.armed.values()), key=len)
        self._distances = distances
        self._around: Surroundings | None = None
        self._unknown: set[int] = set()  # addresses of breakpoints that belong to no site

    def pristine(self, address: int, content: bytes) -> bytes:
        """Bytes read at a virtual address, with the original ones at armed sites, those of copies included."""
        for distance in self._distances:
            if distance != self._loaded.bias or not self._loaded.has_lost(address):
                content = self._sites.pristine(address - distance, content)
        return content

    def claim(self, pc: int) -> Hit | None:
        """The hit of a breakpoint at `pc`; None if it is the guest's own."""
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
        if distance == self._loaded.bias and self._loaded.has_lost(pc):
            return None
        return self.add(row, pc)

    def add(self, row: int, pc: int) -> Hit:
        """Add a site at an address, where its code is; returns its hit."""
        distance = pc - int(self._sites.manifest.sites["address"][row])
        # Trampolines that end with a breakpoint were loaded with the image; those that jump back do so to link
        # addresses, so for them an image with a bias is a copy as well.
        is_moved = distance != (self._loaded.bias if self._trampolines is None else 0) or not self._has_own
        self._trap.add(self._moved(row, pc, pc - distance) if is_moved else self._sites.site(row), pc)
        return self._trap.hits[pc]

    def _moved(self, row: int, pc: int, link: int) -> Site:
        sites = self._sites
        instruction = sites.pristine(link, self._fetch(pc, int(sites.manifest.sites["size"][row])))
        site = moved_site(sites, self._trampolines, row, pc, instruction)
        if site.emulation is not None:
            return site
        slot = sites.spare_slot(int(sites.manifest.sites["kind"][row]), instruction, pc)
        return site if slot is None else replace(site, trampoline=slot)

    def _find(self, pc: int) -> int | None:
        """How far the code at `pc` is from where it was linked, in bytes; None if it is no copy."""
        if not self._is_breakpoint(pc):
            return None  # the exception is the guest's own
        if pc in self._unknown:
            return None
        link = self._aliased(pc)  # certain and cheap: before code is compared
        if link is None and self._space.watched.has(self._space.real_physical(pc)):
            return None  # a breakpoint of the guest's own, in code that it writes: that is no copy
        link = self._link_address(pc) if link is None else link
        if link is None or self._sites.row_at(link) is None:
            self._unknown.add(pc)
            return None
        return pc - link

    def _is_breakpoint(self, pc: int) -> bool:
        """Whether a breakpoint of ours is in memory there. A longer one is read only where the shortest or its start
        is: it might reach into a page that is not mapped."""
        shortest = self._breakpoints[0]
        try:
            content = self._fetch(pc, len(shortest))
            if content == shortest:
                return True
            return any(
                armed.startswith(content) and self._fetch(pc, len(armed)) == armed for armed in self._breakpoints[1:]
            )
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
        Images nearly always move by whole pages: those candidates come first."""
        addresses = self._sites.manifest.sites["address"][self._sites.is_armed]
        in_page = np.uint64(pc % _PAGE)
        for candidates in (addresses[addresses % np.uint64(_PAGE) == in_page], addresses):
            found = self._known_code().one_of(pc, candidates) if len(candidates) else None
            if found is not None:
                return found
        return None

    def _known_code(self) -> Surroundings:
        """The segments with sites, as they were loaded and armed."""
        if self._around is None:
            image, addresses = self._loaded.image, self._sites.manifest.patched["address"]
            texts = texts_of(image, addresses, image.relocated)
            for text in texts:
                self._sites.show_armed(text.address, text.content)
            self._around = Surroundings(texts, self._fetch)
        return self._around


def moved_site(sites: SiteTable, trampolines: MovedTrampolines | None, row: int, pc: int, instruction: bytes) -> Site:
    """A site whose code is at `pc` by now, and its instruction there `instruction`.

    Raises:
        MachineError: its instruction can have no trampoline there.
    """
    site = sites.site(row, instruction)
    if site.emulation is not None or trampolines is None:
        return site
    slot = trampolines.slot(int(sites.manifest.sites["kind"][row]), instruction, pc)
    if slot is not None:
        return replace(site, trampoline=slot)
    site = sites.site(row, instruction, Method.EMULATE)
    if site.emulation is None:
        raise MachineError(
            f"the image moved its text: {instruction.hex()} at {pc:#x} can have no trampoline there: its operand is "
            "out of reach, or there is no room below those of the file (--trampoline-base moves them)"
        )
    return site
