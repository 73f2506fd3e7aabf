"""A standalone image in our own machine, which runs it as any other; when it stops, its memory is read."""

from collections.abc import Callable

from kinst.runtime.clauses.profiles import user_mode
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.guest_host import GuestHost
from kinst.runtime.tracing.running import PAUSES
from kinst.runtime.tracing.standalone.probes import StandaloneProbes
from kinst.runtime.tracing.surroundings import Surroundings
from kinst.targets.c_types import ImageTypes


class StandaloneGuest:
    """What a standalone image keeps, in the memory of a machine."""

    def __init__(self, probes: StandaloneProbes, system: System, loaded: Loaded) -> None:
        """The image is loaded and has not run."""
        self._probes, self._system, self._loaded = probes, system, loaded

    def surroundings(self, types: ImageTypes, warn: Callable[[str], None]) -> Surroundings:
        """What clauses can see: no more than if it ran elsewhere."""
        system = self._system
        host = GuestHost(system, user_mode(system.arch, system.engine.live.get))
        return self._probes.surroundings(host, self._loaded, types, lambda: None, warn)

    def look(self, end: End) -> None:
        """Let its probes fire for what they have found since the last time. `end` is why the machine stopped."""
        self._probes.fire(self._probes.find(self._read, is_last=end not in PAUSES))

    def _read(self, address: int, size: int) -> bytes:
        kept = self._probes.kept
        start = self._loaded.physical(kept.address)
        return self._system.memory.read(address - kept.address + (kept.load_address if start is None else start), size)
