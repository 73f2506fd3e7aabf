"""The machine of a guest, and what is known of its system, as probes of its user space see them."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kinst.runtime.clauses.environment import GuestProfile
from kinst.runtime.clauses.profiles import Guest
from kinst.runtime.engine.code_watch import CodeWatch
from kinst.runtime.machine.exception_model import Taken
from kinst.runtime.machine.system import System
from kinst.runtime.machine.watching.mirrored_pages import Raised
from kinst.runtime.providers.provider import Providers
from kinst.runtime.systems.linux_tasks import LinuxTasks
from kinst.runtime.trap.trap import Firing
from kinst.runtime.userspace.file_paths import LinuxPaths
from kinst.runtime.userspace.guest_files import GuestFiles
from kinst.runtime.userspace.mapping_events import MappingEvents
from kinst.runtime.userspace.mappings import LinuxMappings, page_size
from kinst.runtime.userspace.uprobe import UprobeProvider
from kinst.runtime.userspace.usdt import UsdtProvider
from kinst.runtime.userspace.user_code import UserCode

if TYPE_CHECKING:
    from kinst.runtime.tracing.host.machine_host import MachineHost

# Words of the names of what a CPU takes at an access to memory, after which the instruction is begun again.
_FAULTS: Final = ("page-fault", "data-abort")

FaultWatcher = Callable[[int, int], None]


class UserMachine:
    """Implements `kinst.runtime.userspace.user_code.UserMachine`."""

    def __init__(
        self, system: System, host: "MachineHost", guest: Guest, profile: GuestProfile, warn: Callable[[str], None]
    ) -> None:
        """Nothing is watched."""
        self.arch, self.memory, self.types, self.symbol = guest.arch, guest.memory, guest.types, guest.symbol
        self._system, self._host, self._profile, self.warn = system, host, profile, warn
        self.is_user = guest.is_user
        self._tasks = LinuxTasks(guest)
        self._watchers: list[FaultWatcher] = []

    def watch(self, reached: Callable[[int], None]) -> CodeWatch:
        """See `UserMachine`."""
        return self._system.engine.watch_code(reached)

    def firing_at(self, address: int) -> Firing:
        """See `UserMachine`."""
        return self._host.excepting(address)

    def accessing(self) -> Firing:
        """See `WordMachine`."""
        return self._host.in_memory()

    def translated(self, address: int) -> int | None:
        """See `WordMachine`."""
        return self._host.translated(address)

    def raise_words(self, pages: frozenset[int], raised: Raised) -> None:
        """See `WordMachine`."""
        self._system.space.mirrored().answer(pages, raised)

    def task(self, firing: Firing) -> int:
        """See `UserMachine`."""
        return self._profile.integer(firing, "curthread")

    def tasks(self) -> Iterable[int]:
        """See `UserMachine`."""
        return self._tasks.addresses()

    def watch_faults(self, watcher: FaultWatcher) -> None:
        """See `UserMachine`."""
        if not self._watchers:
            self._host.watch_taken(self._taken)
        self._watchers.append(watcher)

    def unwatch_faults(self, watcher: FaultWatcher) -> None:
        """See `UserMachine`."""
        self._watchers.remove(watcher)
        if not self._watchers:
            self._host.unwatch_taken(self._taken)

    def _taken(self, taken: Taken) -> None:
        if not taken.is_interrupt and self._host.name_of(taken).endswith(_FAULTS):
            for watcher in self._watchers:
                watcher(taken.pc, taken.address)


def register_in_programs(
    providers: Providers,
    machine: UserMachine,
    events: MappingEvents,
    files: GuestFiles,
    is_wanted: Callable[[str], bool],
    is_chosen: Callable[[Firing], bool] | None,
) -> UserCode:
    """Add the wanted providers of probes in the guest's user space; they fire in the chosen processes."""
    mappings = LinuxMappings(machine.types, machine.memory, page_size(machine.symbol))
    code = UserCode(machine, events, mappings, LinuxPaths(machine.types, machine.memory), is_chosen)
    for provider in (UprobeProvider, UsdtProvider):
        if is_wanted(provider.registration.name):
            providers.register(provider(code, files, machine.arch))
    return code
