"""mem: each load and store of a variable or of some memory, `mem::NAME:read|write`.

NAME is a variable of the image, or addresses as `mmio` has them: `0x1000-0x1fff`, `0x1000+8`; one that the image does
not have is physical. A probe is made on demand, and watches the physical memory: an access by any virtual address and
by any CPU fires it, once for each access of the engine, before it is done. What devices and the walk of tables do is no
access.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

from kinst.runtime.machine.watching.mirrored_pages import MemoryAccess, MemoryWatcher
from kinst.runtime.paging.walker import Access
from kinst.runtime.providers.mmio import NAMES, parsed_range
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.probe import ProbeName, is_glob
from kinst.targets.values import dataclass

_ARGUMENTS: Final = tuple(map(Argument, ("uint64_t", "uint64_t", "uint32_t", "uint64_t", "uint64_t")))


class MemoryHost(Protocol):
    """What the provider needs from the run."""

    def variable(self, name: str) -> range | None:
        """The virtual addresses of a variable of the image; None if there is none of this name."""
        ...

    def physical(self, addresses: range) -> range | None:
        """The physical addresses; None if they are not in RAM."""
        ...

    def watch_memory(self, addresses: range, access: Access, watcher: MemoryWatcher) -> None:
        """Call `watcher` with each access of a kind to physical addresses from now on, before it is done."""
        ...

    def unwatch_memory(self, watcher: MemoryWatcher) -> None:
        """Call it no more."""
        ...

    def in_memory(self) -> Firing:
        """A firing at the instruction of the access that a watcher is called with at the moment."""
        ...


@dataclass(frozen=True, slots=True)
class _Watched:
    """What one probe watches."""

    virtual: range
    physical: range
    access: Access


class MemProvider:
    """The provider `mem`; implements `kinst.runtime.providers.provider.Provider`."""

    registration = Registration(
        "mem",
        ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, EVOLVING),
        needs="a variable of the image or addresses of RAM in its third field: mem::jiffies:write, mem::0x1000+8:read",
    )

    def __init__(self, host: MemoryHost) -> None:
        """Nothing is enabled, and nothing watched."""
        self._host = host
        self._watched: dict[int, _Watched] = {}  # by identifier
        self._watchers: dict[int, MemoryWatcher] = {}  # of enabled ones
        self._values: tuple[int, ...] = ()  # of the access that fires

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create the probes of what is asked for by name."""
        if wanted is None or wanted.module or not wanted.function or is_glob(wanted.function):
            return
        virtual = parsed_range(wanted.function) or self._host.variable(wanted.function)
        physical = None if virtual is None else self._host.physical(virtual)
        if virtual is None or physical is None:
            return
        for access, name in NAMES.items():
            if wanted.matches_name(name) and probes.lookup("", wanted.function, name) is None:
                self._watched[probes.create("", wanted.function, name)] = _Watched(virtual, physical, access)

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Watch what the probes are of."""
        self.disable(identifiers)
        for identifier in identifiers.tolist():
            enabling, watched = Enabling(identifier, action, self.argument, 0), self._watched[identifier]
            watcher = self._watchers[identifier] = partial(self._accessed, enabling, watched)
            self._host.watch_memory(watched.physical, watched.access, watcher)

    def disable(self, identifiers: Identifiers) -> None:
        """Watch it no more."""
        for identifier in identifiers.tolist():
            watcher = self._watchers.pop(identifier, None)
            if watcher is not None:
                self._host.unwatch_memory(watcher)

    def destroy(self, identifiers: Identifiers) -> None:
        """Forget these probes."""
        for identifier in identifiers.tolist():
            self._watched.pop(identifier, None)

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """The address, the value, the size in bytes, the instruction's address, and what was there before."""
        return _ARGUMENTS

    def argument(self, firing: Firing, index: int) -> int:
        """A number of the access that fires."""
        return self._values[index] if index < len(self._values) else 0

    def _accessed(self, enabling: Enabling, watched: _Watched, access: MemoryAccess) -> None:
        firing = self._host.in_memory()
        address = access.address - watched.physical.start + watched.virtual.start
        self._values = address, access.value, access.size, firing.site, access.before
        firing.fire(enabling)
