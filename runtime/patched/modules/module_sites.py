"""A patched module that the guest loads by itself -> its sites, wherever the guest has put them.

Its breakpoints come with the file. At a hit the bytes around it identify the site, so nothing need be known of how a
kernel loads modules. Memory of a module that was removed, or of code that runs once, is used again: a site is looked up
again if other bytes are there by now. So the engine counts no hits here by itself: each is dispatched.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.writing.write import patched_sizes
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.patched.moved_trampolines import MovedTrampolines
from kinst.runtime.patched.relocated import moved_site
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.patched.surroundings import REACHES, CodeText, Surroundings, texts_of
from kinst.runtime.trap.trap import Hit
from kinst.targets.errors import MachineError
from kinst.targets.image import Image
from kinst.targets.kernels.patched_at_boot import written_by_kernel

_PAGE: Final = 4096
_SEEN: Final = 16  # bytes from a site on that must not have changed since its last hit
_ENOUGH: Final = 8  # bytes that match, so that it is no coincidence


class ModuleSites:
    """A handler for `TrapPath.dtrace_invop_add`."""

    def __init__(
        self, table: SiteTable, image: Image, system: System, kernel: Loaded, trampolines: MovedTrampolines | None
    ) -> None:
        """`trampolines` are for machines on which those of the file serve one address only."""
        self.table = table
        self._system = system
        self._kernel = [range(start, start + size) for start, _, size in kernel.segments]
        self._trampolines = trampolines
        self._fetch = system.space.fetch
        written = np.concatenate([image.relocated, written_by_kernel(image)[:, :2]])
        texts = texts_of(image, table.manifest.patched["address"], written)
        self._surroundings = Surroundings(texts, self._fetch)
        self._fixed = [_fixed(text, table) for text in texts]
        self._distances: dict[int, None] = {}  # of sections, in bytes, from their link addresses
        self._hits: dict[int, tuple[bytes, Hit]] = {}

    def arm(self) -> None:
        """Take over what is enabled. No breakpoint is written or removed: where the guest has put the module is not
        known."""
        self.table.arm(self._system.memory, self._system.trap)
        self._hits.clear()

    def claim(self, pc: int) -> Hit | None:
        """The hit of a breakpoint at `pc`; None if it is not this module's."""
        if any(pc in one for one in self._kernel):
            return None
        seen = self._fetch(pc, min(_SEEN, _PAGE - pc % _PAGE))
        known = self._hits.get(pc)
        if known is not None and known[0] == seen:
            return known[1]
        row = self._row_at(pc)
        if row is None:
            return None
        trap = self._system.trap
        record = self.table.manifest.sites[row]
        instruction = record["original"].tobytes()[: int(record["size"])]  # no relocation is applied to a site
        # It is not added to the trap path, so that the next hit comes here as well, and other bytes are noticed.
        hit = trap.prepared(moved_site(self.table, self._trampolines, row, pc, instruction), pc)
        self._hits[pc] = seen, hit
        return hit

    def _row_at(self, pc: int) -> int | None:
        """The row of the site whose code is at `pc` now."""
        candidates = self.table.manifest.patched["address"]
        for reach in REACHES:
            candidates = self._surroundings.alike(pc, candidates, reach)
            if not len(candidates):
                return None
            if len(candidates) == 1 and self._is_certain(int(candidates[0]), reach):
                break
        known = [link for link in candidates.tolist() if len(candidates) == 1 or pc - link in self._distances]
        if len(known) != 1:
            raise MachineError(
                f"a breakpoint at {pc:#x} is one of {len(candidates)} in {self.table.manifest.module} that look alike: "
                "too little is left of its code to tell which: patch fewer of its instructions"
            )
        self._distances[pc - known[0]] = None
        return self.table.row_at(known[0])

    def _is_certain(self, link: int, reach: int) -> bool:
        """Whether enough bytes around a site are the same wherever the module is loaded, so that it cannot be other
        code."""
        for start, fixed in self._fixed:
            if 0 <= link - start < len(fixed):
                return bool(fixed[max(link - start - reach, 0) : link - start + reach].sum() >= _ENOUGH)
        return False


def _fixed(text: CodeText, table: SiteTable) -> tuple[int, NDArray[np.bool_]]:
    """The address of a text, and which of its bytes are neither breakpoints nor changed when it is loaded."""
    fixed = ~text.is_written
    sites = table.manifest.patched
    for address, size in zip(sites["address"].tolist(), patched_sizes(sites["size"], table.arch).tolist(), strict=True):
        if 0 <= address - text.address < len(fixed):
            fixed[address - text.address : address - text.address + size] = False
    return text.address, fixed
