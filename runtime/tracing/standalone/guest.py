"""A standalone image in our own machine, which runs it as any other; when it stops, its memory is read."""

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
from kinst.runtime.tracing.standalone.probes import StandaloneProbes
from kinst.runtime.tracing.standalone.untouched import Untouched
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import MachineError
from kinst.targets.standalone import Action


class StandaloneGuest:
    """What a standalone image keeps, in the memory of a machine."""

    def __init__(self, probes: StandaloneProbes, system: System, loaded: Loaded, *, is_made_here: bool) -> None:
        """The image is loaded and has not run. `is_made_here`: by --method jump."""
        self._probes, self._system, self._loaded = probes, system, loaded
        self._symbols: Symbols | None = None
        self._warn: Callable[[str], None] = lambda _line: None
        self._has_warned = False
        kept, manifest = probes.kept, probes.manifest
        self._untouched = Untouched(manifest, kept, system, loaded, self._start, self._place, is_made_here=is_made_here)

    def surroundings(self, types: ImageTypes, warn: Callable[[str], None]) -> Surroundings:
        """What clauses can see: no more than if it ran elsewhere."""
        system, self._warn = self._system, warn
        host = GuestHost(system, user_mode(system.arch, system.engine.live.get))
        found = self._probes.surroundings(host, self._loaded, types, self._begin, self._probes.admitting(warn))
        self._symbols = found.symbols
        return replace(found, fold=self._fold)

    def _begin(self, sites: SiteTable | None) -> None:
        self._probes.check(sites)
        self._untouched.begin()

    def look(self, end: End) -> None:
        """Let its probes fire for what they have found since the last time. `end` is why the machine stopped.

        Raises:
            MachineError: the image went on where its trampolines are not, or stored to them or to its counters.
        """
        other = copy_of(self._probes.manifest, self._loaded, self._system.memory)
        if other is not None:
            raise MachineError(
                f"the image copied itself to {other:#x} and goes on there, without its trampolines: what it did and "
                "counted then means nothing: breakpoints (kinst-run without --method jump) move along"
            )
        self._look(is_last=end not in PAUSES)
        if self._untouched.is_cleared and not self._has_warned:
            self._has_warned = True
            self._warn(CLEARED)

    def after_turn(self) -> None:
        """A CPU stands between two instructions. Raises MachineError: as `look`."""
        self._untouched.after_turn()

    def _fold(self) -> None:
        """Give counts to aggregations that somebody is about to look at. Records fire when the machine has stopped: who
        looks may be one of their clauses."""
        if self._probes.kept.action is Action.COUNT:
            self._look(is_last=False)

    def _look(self, *, is_last: bool) -> None:
        if self._untouched.is_untouched(is_last=is_last):
            self._probes.fire(self._probes.find(self._read, is_last=is_last))

    def _read(self, address: int, size: int) -> bytes:
        data = self._system.memory.read(address - self._probes.kept.address + self._start, size)
        return self._untouched.counted(data) if self._probes.kept.action is Action.COUNT else data

    def _place(self, address: int) -> str:
        """``module`function+0x1c`` of the running image, wherever it is called by its physical address."""
        assert self._symbols is not None, "surroundings() comes first"
        found = self._symbols.describe(address, "stack")
        for virtual, start, size in self._loaded.segments:
            if "`" not in found and 0 <= address - start < size:
                return self._symbols.describe(virtual + address - start, "stack")
        return found

    @property
    def _start(self) -> int:
        """Where the memory for it is: what no segment has is as far from where the file says as they are."""
        kept, loaded = self._probes.kept, self._loaded
        start = loaded.physical(kept.address)
        if start is not None:
            return start
        lowest = min(one.load_address for one in loaded.image.segments if one.kind == PT_LOAD and one.size)
        return kept.load_address + min(physical for _, physical, _ in loaded.segments) - lowest
