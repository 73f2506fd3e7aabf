"""A standalone image in our own machine, which runs it like any image, and reads its counters or records when it
stops."""

from collections.abc import Callable
from dataclasses import replace

from kinst.runtime.clauses.environment import Symbols
from kinst.runtime.clauses.profiles import user_mode
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.tracing.host.guest_host import GuestHost
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.running import PAUSES
from kinst.runtime.tracing.standalone.copies import copy_of
from kinst.runtime.tracing.standalone.drawn_counters import CLEARED
from kinst.runtime.tracing.standalone.findings import Part
from kinst.runtime.tracing.standalone.foreign_stores import ForeignStores
from kinst.runtime.tracing.standalone.probes import StandaloneProbes
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import MachineError


class StandaloneGuest:
    """The counters or records of a standalone image, in the memory of a machine."""

    def __init__(self, probes: StandaloneProbes, system: System, loaded: Loaded, *, is_made_here: bool) -> None:
        """The image is loaded and has not run. `is_made_here`: by --method jump."""
        self._probes, self._system, self._loaded = probes, system, loaded
        self._symbols: Symbols | None = None
        self._warn: Callable[[str], None] = lambda _line: None
        self._has_warned = False
        kept, manifest = probes.kept, probes.manifest
        self._stores = ForeignStores(
            manifest, kept, system, loaded, self._start, self._place, is_made_here=is_made_here
        )

    def surroundings(self, types: ImageTypes, warn: Callable[[str], None]) -> Surroundings:
        """What clauses can see: no more than if the image ran on hardware, so that programs print the same."""
        system, self._warn = self._system, warn
        host = GuestHost(system, user_mode(system.arch, system.engine.live.get))
        found = self._probes.surroundings(host, self._loaded, types, self._begin, self._probes.admitting(warn))
        self._symbols = found.symbols
        return replace(found, fold=self._fold)

    def _begin(self, sites: SiteTable | None) -> None:
        self._probes.check(sites)
        self._stores.begin()

    def collect(self, end: End) -> None:
        """Let the probes fire for what was counted or recorded since the last time. `end` is why the machine stopped.

        Raises:
            MachineError: the image continued in a copy of itself, or overwrote its trampolines or counters.
        """
        other = copy_of(self._probes.manifest, self._loaded, self._system.memory)
        if other is not None:
            raise MachineError(
                f"the image copied itself to {other:#x} and goes on there, without its trampolines: what it did and "
                "counted then means nothing: breakpoints (kinst-run without --method jump) move along"
            )
        self._collect(is_last=end not in PAUSES)
        if self._stores.is_cleared and not self._has_warned:
            self._has_warned = True
            self._warn(CLEARED)

    def after_turn(self) -> None:
        """Check, between two turns of a CPU, for overwritten counters. Raises MachineError: as `collect`."""
        self._stores.after_turn()

    def _fold(self) -> None:
        """Add counts to the aggregations, before a snapshot of these. Records wait until the machine has stopped: a
        snapshot may be taken by one of their own clauses, in the middle of their replay."""
        if self._probes.kept.has_counters:
            self._collect(Part.COUNTS, is_last=False)

    def _collect(self, part: Part = Part.ALL, *, is_last: bool) -> None:
        if self._stores.is_clean(is_last=is_last):
            self._probes.fire(self._probes.find(self._read, part, is_last=is_last))

    def _read(self, address: int, size: int) -> bytes:
        kept = self._probes.kept
        data = self._system.memory.read(address - kept.address + self._start, size)
        return self._stores.counted(data) if kept.has_counters and address == kept.address else data

    def _place(self, address: int) -> str:
        """``module`function+0x1c`` for an address of the running image, which may be a physical one."""
        assert self._symbols is not None, "surroundings() comes first"
        found = self._symbols.describe(address, "stack")
        for virtual, start, size in self._loaded.segments:
            if "`" not in found and 0 <= address - start < size:
                return self._symbols.describe(virtual + address - start, "stack")
        return found

    @property
    def _start(self) -> int:
        """The physical address of the counters or the ring. Outside all segments, it is moved as far from what the file
        says as the segments were."""
        kept, loaded = self._probes.kept, self._loaded
        start = loaded.physical(kept.address)
        if start is not None:
            return start
        lowest = min(one.load_address for one in loaded.image.segments if one.kind == PT_LOAD and one.size)
        return kept.load_address + min(physical for _, physical, _ in loaded.segments) - lowest
