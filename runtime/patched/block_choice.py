"""Sites that only count -> those at which a block of code begins each time that they are executed.

This is decided before the guest runs, by what is usual; `BlockSites` finds the exceptions while it runs.
"""

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.patched.tracer_room import is_tracer_room
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.manifest.packed import Manifest

_GAP: Final = 1 << 24  # bytes between code that belongs together
_LONGEST_LEAD: Final = 32  # bytes
# amd64's repeated string instructions: the emulator jumps to their own start after each iteration, so a block would be
# counted for each. F2 and F3 are the prefixes; the opcodes are ins, outs, movs, cmps, stos, lods and scas (SDM volume
# 2, REP).
_REPEATS: Final = (0xF2, 0xF3)
_STRINGS: Final = (*range(0x6C, 0x70), *range(0xA4, 0xA8), *range(0xAA, 0xB0))


class BlockChoice:
    """The choice for one image, until the guest does what rules it out."""

    def __init__(self, manifest: Manifest, arch: ArchFacts, loaded: Loaded, memory: PhysicalMemory) -> None:
        """`loaded` says where the image is in `memory`."""
        self._manifest, self._arch, self._loaded, self._memory = manifest, arch, loaded, memory
        record = manifest.sites  # by row, how far a site is behind its function's start
        self.leads = record["address"] - manifest.functions["address"][record["function"]]
        self._addresses: NDArray[np.uint64] = np.ascontiguousarray(record["address"])
        self.why_not = ""  # why no site is counted at blocks any more

    def give_up(self, why: str) -> bool:
        """Choose none from now on. False if there was a reason already."""
        if self.why_not:
            return False
        self.why_not = why
        return True

    def begins(self, counts: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the sites that only count can be counted where blocks begin, as far as is known before the guest
        runs."""
        manifest = self._manifest
        record, chosen = manifest.sites, np.zeros(len(manifest.sites), np.bool_)
        if self.why_not:
            return chosen
        begins: NDArray[np.bool_] = self.leads == 0
        near = np.flatnonzero(counts & ~begins & (self.leads <= _LONGEST_LEAD))
        begins[near[[self._is_reached_from_start(row) for row in near.tolist()]]] = True
        rows = np.flatnonzero(counts & begins & (manifest.is_deferred | ~self.repeats(record["original"])))
        chosen[rows[_largest(record["address"][rows])]] = True
        return chosen

    def _is_reached_from_start(self, row: int) -> bool:
        """Whether only the nops or the call of a function tracer are between a function's start and a site. Whatever
        the guest writes there falls through to the site, or is a call that returns to it."""
        address, lead = int(self._addresses[row]), int(self.leads[row])
        if self._addresses[np.searchsorted(self._addresses, np.uint64(address - lead))] == address - lead:
            return False  # the start is a site itself
        place = self._loaded.physical(address - lead)
        if place is None or not self._memory.has(place, lead):
            return False
        return is_tracer_room(self._arch, self._memory.read(place, lead))

    def repeats(self, original: NDArray[np.void]) -> NDArray[np.bool_]:
        """Which of these (n) instructions of 16 bytes each are repeated string instructions."""
        code = np.ascontiguousarray(original).view(np.uint8).reshape(-1, 16)
        if self._arch.instruction_alignment > 1:
            return np.zeros(len(code), np.bool_)
        is_prefix, is_string = np.isin(code[:, :4], _REPEATS), np.isin(code[:, 1:5], _STRINGS)
        repeats: NDArray[np.bool_] = np.logical_and(is_prefix.any(axis=1), is_string.any(axis=1))
        return repeats


def _largest(addresses: NDArray[np.uint64]) -> slice:
    """The largest group of ascending addresses without a large gap. The engine has a bit for each address in between,
    and a kernel's first code may be linked far from the rest."""
    cuts = [0, *(np.flatnonzero(np.diff(addresses) > np.uint64(_GAP)) + 1).tolist(), len(addresses)]
    return max((slice(*bounds) for bounds in pairwise(cuts)), key=lambda one: one.stop - one.start)
