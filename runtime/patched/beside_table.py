"""The sites of an image that comes while the guest runs: the table is made before it is known where they will be."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.patched.sites import Patched, SiteHooks, SiteTable
from kinst.runtime.trap.trap import TrapPath

if TYPE_CHECKING:
    from kinst.runtime.engine.qiling_machine import QilingMachine
    from kinst.runtime.machine.address_space import AddressSpace
    from kinst.runtime.machine.memory import PhysicalMemory
    from kinst.runtime.trap.arch.emulator import Emulator
    from kinst.targets.arch.facts import ArchFacts

_WIDTH = 16  # bytes that are kept of each instruction


class BesideTable(SiteTable):
    """A `SiteTable` whose image arrives while the guest runs."""

    def __init__(self, patched: Patched, arch: "ArchFacts", emulator: "Emulator", hooks: SiteHooks) -> None:
        """`patched` says where the image is: nowhere so far."""
        super().__init__(patched, arch, emulator, hooks)
        self.is_named = True

    def map_trampolines(self, space: "AddressSpace", trap: TrapPath, engine: "QilingMachine") -> None:
        """As in `SiteTable`. Those that jump back serve one address, which is not known yet."""
        if self.arch.return_breakpoint is not None:
            super().map_trampolines(space, trap, engine)

    def settle(self, memory: "PhysicalMemory") -> int:
        """The image has arrived, and its `Loaded` says where. Sites whose instruction is not there are left alone.
        Returns how many of those there are that have an enabled probe."""
        # Trampolines stay where they were mapped; what refers to them adds the bias.
        self._distance = -self._patched.loaded.bias
        is_there = np.zeros(len(self._addresses), np.bool_)
        for virtual, physical, size in self._patched.loaded.segments:
            text = np.frombuffer(memory.view(physical, size, is_written=False), np.uint8)
            is_there |= self._is_at(text, virtual - self._patched.loaded.bias)
        is_missing = self.is_patched & ~is_there
        self.is_patched = self.is_patched & is_there
        return int((is_missing & self.active_sites).sum())

    def _is_at(self, text: NDArray[np.uint8], start: int) -> NDArray[np.bool_]:
        """For each site, whether `text`, from a link address on, has its instruction, or its breakpoint."""
        places = (self._addresses - np.uint64(start % (1 << 64))).view(np.int64)
        sizes = self.manifest.sites["size"].astype(np.int64)
        found = np.zeros(len(places), np.bool_)
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero((sizes == size) & (places >= 0) & (places + size <= len(text)))
            here = text[places[rows][:, None] + np.arange(size)]
            original = self.manifest.sites["original"][rows].view(np.uint8).reshape(-1, _WIDTH)[:, :size]
            armed = np.frombuffer(self.armed_bytes[size], np.uint8)
            found[rows] = (here == original).all(axis=1) | (here[:, : len(armed)] == armed).all(axis=1)
        return found
