"""A standalone image in our own machine, which runs it as any other; when it stops, its memory is read."""

from collections.abc import Callable
from dataclasses import replace

from kinst.runtime.clauses.profiles import user_mode
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.guest_host import GuestHost
from kinst.runtime.tracing.running import PAUSES
from kinst.runtime.tracing.standalone.copies import copy_of
from kinst.runtime.tracing.standalone.probes import StandaloneProbes
from kinst.runtime.tracing.surroundings import Surroundings
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import MachineError
from kinst.targets.standalone import Action


class StandaloneGuest:
    """What a standalone image keeps, in the memory of a machine."""

    def __init__(self, probes: StandaloneProbes, system: System, loaded: Loaded) -> None:
        """The image is loaded and has not run."""
        self._probes, self._system, self._loaded = probes, system, loaded

    def surroundings(self, types: ImageTypes, warn: Callable[[str], None]) -> Surroundings:
        """What clauses can see: no more than if it ran elsewhere."""
        system = self._system
        host = GuestHost(system, user_mode(system.arch, system.engine.live.get))
        found = self._probes.surroundings(host, self._loaded, types, lambda: None, warn)
        return replace(found, fold=self._fold)

    def look(self, end: End) -> None:
        """Let its probes fire for what they have found since the last time. `end` is why the machine stopped.

        Raises:
            MachineError: the image went on where its trampolines are not.
        """
        other = copy_of(self._probes.manifest, self._loaded, self._system.memory)
        if other is not None:
            raise MachineError(
                f"the image copied itself to {other:#x} and goes on there, without its trampolines: what it did and "
                "counted then means nothing: breakpoints (kinst-run without --method jump) move along"
            )
        self._look(is_last=end not in PAUSES)

    def _fold(self) -> None:
        """Give counts to aggregations that somebody is about to look at. Records fire when the machine has stopped: who
        looks may be one of their clauses."""
        if self._probes.kept.action is Action.COUNT:
            self._look(is_last=False)

    def _look(self, *, is_last: bool) -> None:
        self._probes.fire(self._probes.find(self._read, is_last=is_last))

    def _read(self, address: int, size: int) -> bytes:
        return self._system.memory.read(address - self._probes.kept.address + self._start, size)

    @property
    def _start(self) -> int:
        """Where the memory for it is: what no segment has is as far from where the file says as they are."""
        kept, loaded = self._probes.kept, self._loaded
        start = loaded.physical(kept.address)
        if start is not None:
            return start
        lowest = min(one.load_address for one in loaded.image.segments if one.kind == PT_LOAD and one.size)
        return kept.load_address + min(physical for _, physical, _ in loaded.segments) - lowest
