"""Sites in files of the guest's user space -> a call each time that any process is about to execute one.

Where a file is mapped is known from the kernel as it maps it (`mapping_events`), before a process can run there. Each
address at which a site can be is watched by the engine (`kinst.runtime.engine.code_watch`), in all address spaces; at a
hit, the areas of the task that runs say whether that file is there, and what is in memory is compared with the file. So
nothing is written into the guest, and an address that another process uses for something else does not fire.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from kinst.runtime.providers.host import GuestMemory
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.runtime.userspace.file_paths import LinuxPaths
from kinst.runtime.userspace.guest_files import GuestFile
from kinst.runtime.userspace.mapping_events import MappingEvents
from kinst.runtime.userspace.mappings import LinuxMappings
from kinst.runtime.userspace.mappings import Mapping as FileMapping
from kinst.runtime.userspace.restarts import Restarts
from kinst.runtime.userspace.semaphores import Semaphores, WordMachine
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass

_MANY: Final = 64  # addresses watched in vain, at which all are gone through
_KERNEL: Final = 1 << 63

Reached = Callable[[Firing, int], None]  # (what fires, the address of the site)


class Site(Protocol):
    """An instruction of a file."""

    @property
    def offset(self) -> int:
        """Where in the file it is."""
        ...

    @property
    def code(self) -> bytes:
        """What it begins with, which is compared with memory."""
        ...

    @property
    def distances(self) -> tuple[int, ...]:
        """How far behind it, in memory, semaphores are that are raised while it is a site."""
        ...


@dataclass(frozen=True, slots=True)
class _Watched:
    """A site, and who is called there."""

    file: GuestFile
    code: bytes
    distances: tuple[int, ...]
    calls: list[Reached]


class Watch(Protocol):
    """`kinst.runtime.engine.code_watch.CodeWatch`."""

    @property
    def addresses(self) -> frozenset[int]:
        """Those that are watched."""
        ...

    def add(self, addresses: Iterable[int]) -> None:
        """Watch these, too."""
        ...

    def keep(self, addresses: Iterable[int]) -> None:
        """Watch no others."""
        ...


class UserMachine(WordMachine, Protocol):
    """What is asked of the machine and of what is known of its system."""

    @property
    def arch(self) -> ArchFacts:
        """The facts of the machine."""
        ...

    @property
    def memory(self) -> GuestMemory:
        """The guest's memory, of user mode and of the kernel, as the running CPU has it."""
        ...

    def watch(self, reached: Callable[[int], None]) -> Watch:
        """A watch of code."""
        ...

    def firing_at(self, address: int) -> Firing:
        """A firing at an instruction that is about to be executed."""
        ...

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU is in user mode."""
        ...

    def task(self, firing: Firing) -> int:
        """The address of the current task."""
        ...

    def tasks(self) -> Iterable[int]:
        """The addresses of all tasks."""
        ...

    def watch_faults(self, watcher: Callable[[int, int], None]) -> None:
        """Call `watcher` from now on with the PC and the address of each access to memory that is refused."""
        ...

    def unwatch_faults(self, watcher: Callable[[int, int], None]) -> None:
        """Call it no more."""
        ...

    def warn(self, text: str) -> None:
        """Tell the user at once."""
        ...


class UserCode:
    """The sites of one run."""

    def __init__(
        self,
        machine: UserMachine,
        events: MappingEvents,
        mappings: LinuxMappings,
        paths: LinuxPaths,
        is_chosen: Callable[[Firing], bool] | None = None,
    ) -> None:
        """No site yet, and nothing is watched. `is_chosen`: whether sites are those of the process that runs; None: of
        all."""
        self._is_chosen = is_chosen
        self._machine, self._events, self._mappings, self._paths = machine, events, mappings, paths
        self._sites: dict[GuestFile, dict[int, _Watched]] = {}  # by offset in the file
        self._watch: Watch | None = None
        self._found: dict[tuple[int, int], tuple[_Watched, ...]] = {}  # what is at an address of an address space
        self._keeps = events.sees_all
        self._restarts = Restarts()
        self._semaphores = Semaphores(machine, self._has_semaphore)
        self._warned: set[str] = set()
        self._useful = 0  # addresses at which a site was when all were gone through

    def obstacle(self) -> str:
        """Why there can be no sites; empty if there can."""
        return self._events.obstacle() or self._mappings.obstacle() or self._paths.obstacle()

    def enable(self, file: GuestFile, site: Site, reached: Reached) -> None:
        """Call `reached` at an instruction of a file."""
        if not self._sites:
            self._events.listen(self._mapped, self._moved, lambda _firing: self._found.clear())
            self._watch = self._watch or self._machine.watch(self._reached)
            self._machine.watch_faults(self._restarts.faulted)
        sites = self._sites.setdefault(file, {})
        watched = sites.setdefault(site.offset, _Watched(file, site.code, site.distances, []))
        watched.calls.append(reached)
        if site.distances:
            self._semaphores.prepare()
        self._found.clear()

    def disable(self, file: GuestFile, site: Site, reached: Reached) -> None:
        """Call it no longer."""
        calls = self._sites[file][site.offset].calls
        calls.remove(reached)
        if calls:
            return
        del self._sites[file][site.offset]
        self._found.clear()
        if not self._sites[file]:
            del self._sites[file]
        if not self._sites and self._watch is not None:
            self._events.rest()
            self._machine.unwatch_faults(self._restarts.faulted)
            self._watch.keep(())
            self._semaphores.keep(frozenset())

    def look_again(self) -> None:
        """Watch where sites are in all processes that there are, and nowhere else."""
        watch = self._watch
        if watch is None or not self._sites:
            return
        spaces = {self._mappings.space_of(task) for task in self._machine.tasks()} - {0}
        mappings = [one for space in spaces for one in self._mappings.each(space)]
        found = {address for one in mappings for address in self._addresses(one)}
        watch.keep(found)
        watch.add(found)
        self._semaphores.keep(frozenset(found))
        self._raise(mappings)
        self._useful = len(found)

    # -- what the kernel does -----------------------------------------------------------------------------------------

    def _mapped(self, firing: Firing) -> None:
        self._found.clear()
        address = firing.regs[self._machine.arch.return_value]
        if not address & _KERNEL:
            space = self._mappings.space_of(self._machine.task(firing))
            self._add(self._mappings.at(space, address))

    def _moved(self, firing: Firing) -> None:
        self._found.clear()
        self._add(self._mappings.of_area(firing.regs[self._machine.arch.return_value]))

    def _add(self, mapping: FileMapping | None) -> None:
        watch = self._watch
        fresh = [] if mapping is None or watch is None else self._addresses(mapping)
        if watch is None or not fresh:
            return
        if len(watch.addresses) > 2 * self._useful + _MANY:
            self.look_again()
        watch.add(fresh)
        self._raise([] if mapping is None else [mapping])

    def _addresses(self, mapping: FileMapping) -> list[int]:
        """Where in a mapping sites are."""
        places = (mapping.address_of(offset) for file in self._files_of(mapping) for offset in self._sites[file])
        return [place for place in places if place is not None]

    def _raise(self, mappings: Iterable[FileMapping]) -> None:
        """Raise the semaphores of the sites in mappings."""
        self._semaphores.add(
            (place, place + distance)
            for mapping in mappings
            for file in self._files_of(mapping)
            for offset, site in self._sites[file].items()
            if site.distances and (place := mapping.address_of(offset)) is not None
            for distance in site.distances
        )

    def _has_semaphore(self, firing: Firing, address: int) -> bool:
        """Whether the process of a firing has a site with a semaphore at an address."""
        if self._is_chosen is not None and not self._is_chosen(firing):
            return False
        space = self._mappings.space_of(self._machine.task(firing))
        return any(site.distances for site in self._known_at(space, address))

    def _files_of(self, mapping: FileMapping) -> list[GuestFile]:
        paths = list(self._paths.aliases(mapping.file))
        return [file for file in self._sites if any(map(file.is_at, paths))]

    # -- what a process does ------------------------------------------------------------------------------------------

    def _reached(self, address: int) -> None:
        firing = self._machine.firing_at(address)
        if not self._machine.is_user(firing):
            return
        task = self._machine.task(firing)
        if self._restarts.is_again(task, address, firing.regs):
            return
        if self._is_chosen is not None and not self._is_chosen(firing):
            return
        for site in self._known_at(self._mappings.space_of(task), address):
            if self._is_as_in_file(site.file, address, site.code):
                self._restarts.begin(task, address, firing.regs)
                for call in tuple(site.calls):
                    call(firing, address)

    def _known_at(self, space: int, address: int) -> tuple[_Watched, ...]:
        found = self._found.get((space, address))
        if found is None:
            found = self._at(space, address)
            if self._keeps:
                self._found[space, address] = found
        return found

    def _at(self, space: int, address: int) -> tuple[_Watched, ...]:
        """The sites at an address of an address space."""
        mapping = self._mappings.at(space, address)
        if mapping is None:
            return ()
        offset = mapping.offset_of(address)
        found = (self._sites[file].get(offset) for file in self._files_of(mapping))
        return tuple(site for site in found if site is not None)

    def _is_as_in_file(self, file: GuestFile, address: int, code: bytes) -> bool:
        """Whether a process is about to execute what is in the file, and not a debugger's breakpoint."""
        try:
            is_same = self._machine.memory.read(address, len(code)) == code
        except Fault:  # another CPU has just taken it away
            return False
        if not is_same and file.module not in self._warned:
            self._warned.add(file.module)
            self._machine.warn(
                f"{file.module}: what the guest runs is not what is in {file.file}: its probes do not fire where "
                "instructions differ"
            )
        return is_same
