"""The machine of a guest, as the providers see it that watch a machine and not the code of an image."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kinst.runtime.machine.exception_model import Taken, TakenWatcher
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.machine.watching.accesses import AccessWatcher, DeviceAccess
from kinst.runtime.machine.watching.mirrored_pages import MemoryWatcher
from kinst.runtime.paging.walker import Access
from kinst.runtime.providers.linux.vminfo import VminfoProvider
from kinst.runtime.providers.mem import MemProvider
from kinst.runtime.providers.mmio import MmioProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.providers.trap import TrapProvider
from kinst.runtime.tracing.host.mid_instruction import MidInstruction
from kinst.runtime.tracing.host.taken_watch import TakenWatch
from kinst.runtime.trap.trap import Firing
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.symbols import SHN_UNDEF
from kinst.targets.machines.machine import DeviceFacts, Space
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID


class MachineHost:
    """Implements `AccessHost`, `MemoryHost`, `CountersHost` and `TrapHost` of the modules `mmio`, `mem`, `vminfo` and
    `trap`."""

    def __init__(self, system: System, loaded: Loaded, types: ImageTypes) -> None:
        """Nothing is watched. The image is loaded, and the machine has not run yet."""
        self._system, self._loaded, self.types = system, loaded, types
        self._mid = MidInstruction(system)
        self._taken = TakenWatch(system)

    @property
    def devices(self) -> Mapping[str, DeviceFacts]:
        """See `AccessHost`."""
        return self._system.facts.devices

    def watch(self, watcher: AccessWatcher) -> None:
        """See `AccessHost`."""
        self._system.accesses.watch(watcher)

    def unwatch(self, watcher: AccessWatcher) -> None:
        """See `AccessHost`."""
        self._system.accesses.unwatch(watcher)

    def accessing(self, access: DeviceAccess) -> Firing:
        """See `AccessHost`."""
        return self._mid.accessing(is_memory=access.space is Space.MEMORY and access.size > 0)

    def variable(self, name: str) -> range | None:
        """See `MemoryHost`."""
        symbols = self._loaded.image.symbols
        rows = symbols.rows_named(name)
        rows = rows[symbols.section[rows] != SHN_UNDEF]
        if not len(rows):
            return None
        start, size = int(symbols.address[rows[0]]) + self._loaded.bias, int(symbols.size[rows[0]])
        return range(start, start + (size or _WORD))

    def physical(self, addresses: range) -> range | None:
        """See `MemoryHost`."""
        found = self._loaded.physical(addresses.start - self._loaded.bias)
        start = addresses.start if found is None else found
        has_ram = self._system.memory.find(start) is not None
        return range(start, start + len(addresses)) if has_ram else None

    def watch_memory(self, addresses: range, access: Access, watcher: MemoryWatcher) -> None:
        """See `MemoryHost`."""
        self._system.space.watch_memory(addresses, access, watcher)

    def unwatch_memory(self, watcher: MemoryWatcher) -> None:
        """See `MemoryHost`."""
        self._system.space.unwatch_memory(watcher)

    def in_memory(self) -> Firing:
        """See `MemoryHost`."""
        return self._mid.accessing(is_memory=True)

    def at_start(self, called: Callable[[], None]) -> None:
        """See `CountersHost`."""
        self._system.attach_observer(_Once(called, self._system.clock.now))

    def translated(self, address: int) -> int | None:
        """See `CountersHost`."""
        found = self._system.space.observe(address)
        return None if found is None or self._system.memory.find(found) is None else found

    def word(self, address: int) -> int | None:
        """See `CountersHost`."""
        return self._system.memory.load(address, _WORD)

    def linked(self, name: str) -> range | None:
        """See `CountersHost`. An address below the kernel's half is relative to the CPU's data: it does not move."""
        found = self.variable(name)
        if found is None:
            return None
        start = found.start - self._loaded.bias
        return found if start & _KERNEL else range(start, start + len(found))

    @property
    def exceptions(self) -> Iterable[tuple[bool, str]]:
        """See `TrapHost`."""
        return self._system.exceptions.taken_names.all()

    def watch_taken(self, watcher: TakenWatcher) -> None:
        """See `TrapHost`."""
        self._taken.watch(watcher)

    def unwatch_taken(self, watcher: TakenWatcher) -> None:
        """See `TrapHost`."""
        self._taken.unwatch(watcher)

    def name_of(self, taken: Taken) -> str:
        """See `TrapHost`."""
        return self._system.exceptions.taken_names.of(taken)

    def excepting(self, pc: int) -> Firing:
        """See `TrapHost`."""
        return self._mid.excepting(pc)


class _Once:
    """A `Timed` that is called when the machine begins to run."""

    def __init__(self, called: Callable[[], None], now: Callable[[], int]) -> None:
        self._called: Callable[[], None] | None = called
        self._now = now

    def deadline(self) -> int | None:
        """Now, until it was called."""
        return None if self._called is None else self._now()

    def advance(self) -> None:
        """Call it."""
        called, self._called = self._called, None
        if called is not None:
            called()


_PROVIDERS: Final = (MmioProvider, MemProvider, TrapProvider, VminfoProvider)
_WORD: Final = 8  # bytes of a variable whose symbol has no size
_KERNEL: Final = 1 << 63


def register_machine_providers(providers: Providers, host: MachineHost, is_wanted: Callable[[str], bool]) -> None:
    """Add those that are wanted, by their names: a description without a provider would match their probes, too."""
    providers.skip_to(FIRST_PROBE_ID)  # an image without probes has reserved nothing
    for provider in _PROVIDERS:
        if is_wanted(provider.registration.name):
            providers.register(provider(host))
