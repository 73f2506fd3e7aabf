"""Breakpoints and watchpoints of a debugger, in the engine: not a byte of the guest's memory is changed for them.

gdb removes all of them whenever the guest stops, and inserts them again before it goes on. So what is in the engine is
changed only when the guest goes on, and while it steps nothing is removed: what is not wanted any more is passed by.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from kinst.runtime.debugger.memory import DebuggedMemory
from kinst.runtime.debugger.stops import Cause
from kinst.runtime.machine.system import System
from kinst.runtime.machine.watching.mirrored_pages import MemoryAccess, MemoryWatcher
from kinst.runtime.paging.walker import Access
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

BREAKPOINTS: Final = {0: Cause.BREAKPOINT, 1: Cause.HARDWARE_BREAKPOINT}  # by the digit of Z and z
WATCHPOINTS: Final = {2: Cause.WRITTEN, 3: Cause.READ, 4: Cause.ACCESSED}
_ACCESSES: Final = {
    Cause.WRITTEN: (Access.WRITE,),
    Cause.READ: (Access.READ,),
    Cause.ACCESSED: (Access.READ, Access.WRITE),
}
_LONGEST: Final = 1 << 16  # bytes that one watchpoint may have


@dataclass(frozen=True, slots=True)
class Watchpoint:
    """A watchpoint; `physical` is where its memory was when it was inserted."""

    cause: Cause
    address: int
    size: int
    physical: tuple[range, ...]


class Points:
    """Those of one machine. `on_access` is told of each access that a watchpoint is for."""

    def __init__(
        self,
        system: System,
        memory: DebuggedMemory,
        on_break: Callable[[Cause, int], bool],
        on_watch: Callable[[], None],
    ) -> None:
        """None yet. `on_break` is called before the instruction at a breakpoint: whether the CPU stops there.
        `on_watch` is called in the middle of an instruction that did what a watchpoint is for; `took_watched` has it
        then."""
        self._system, self._memory, self._on_break, self._on_watch = system, memory, on_break, on_watch
        self._breakpoints: dict[int, set[Cause]] = {}
        self._watchpoints: list[Watchpoint] = []
        self._watchers: dict[Watchpoint, MemoryWatcher] = {}
        self._once: set[int] = set()
        self._stops = system.engine.stop_before(self._reached)
        self._watched: tuple[Cause, int] | None = None

    # -- what the debugger asks for -----------------------------------------------------------------------------------

    def insert(self, kind: int, address: int, size: int) -> None:
        """Z: insert one. Raises UsageError."""
        if kind in BREAKPOINTS:
            self._breakpoints.setdefault(address, set()).add(BREAKPOINTS[kind])
            return
        cause = WATCHPOINTS[kind]
        if not 1 <= size <= _LONGEST:
            raise UsageError(f"a watchpoint of {size} bytes: 1 to {_LONGEST} are possible")
        point = Watchpoint(cause, address, size, self._places(address, size))
        if point not in self._watchpoints:
            self._watchpoints.append(point)

    def remove(self, kind: int, address: int, size: int) -> None:
        """z: remove one, if it is there."""
        if kind in BREAKPOINTS:
            causes = self._breakpoints.get(address, set())
            causes.discard(BREAKPOINTS[kind])
            if not causes:
                self._breakpoints.pop(address, None)
            return
        given = WATCHPOINTS[kind], address, size
        self._watchpoints = [one for one in self._watchpoints if (one.cause, one.address, one.size) != given]

    def break_once(self, address: int) -> None:
        """Stop at an address once, without the debugger's knowledge."""
        self._once.add(address)

    def clear(self) -> None:
        """Remove all: the debugger has left."""
        self._breakpoints.clear()
        self._watchpoints.clear()
        self._once.clear()

    def _places(self, address: int, size: int) -> tuple[range, ...]:
        found = list[range]()
        while size > 0:
            length = min(size, 4096 - address % 4096)
            physical = self._memory.physical(address)
            if physical is None or not self._system.memory.has(physical, length):
                raise UsageError(f"there is no memory at {address:#x} that could be watched")
            found.append(range(physical, physical + length))
            address, size = address + length, size - length
        return tuple(found)

    # -- the engine ---------------------------------------------------------------------------------------------------

    @property
    def watched(self) -> tuple[Watchpoint, ...]:
        """The watchpoints."""
        return tuple(self._watchpoints)

    def prepare(self, *, is_step: bool) -> None:
        """Between two runs: the guest is about to go on."""
        wanted = self._breakpoints.keys() | self._once
        if is_step:
            self._stops.add(wanted)
        else:
            self._stops.set(wanted)
        self._watch(is_step=is_step)

    def _watch(self, *, is_step: bool) -> None:
        space = self._system.space
        for point in [one for one in self._watchers if one not in self._watchpoints]:
            if not is_step:
                space.unwatch_memory(self._watchers.pop(point))
        for point in [one for one in self._watchpoints if one not in self._watchers]:
            watcher = self._watchers[point] = partial(self._accessed, point)
            for place in point.physical:
                for access in _ACCESSES[point.cause]:
                    space.watch_memory(place, access, watcher)

    def _reached(self, address: int) -> bool:
        causes = self._breakpoints.get(address)
        if causes is not None:
            is_soft = Cause.BREAKPOINT in causes
            return self._on_break(Cause.BREAKPOINT if is_soft else Cause.HARDWARE_BREAKPOINT, address)
        is_once = address in self._once and self._on_break(Cause.ASKED, address)
        if is_once:
            self._once.discard(address)
        return is_once

    def _accessed(self, point: Watchpoint, _access: MemoryAccess) -> None:
        if point in self._watchpoints and self._watched is None:
            self._watched = point.cause, point.address
            self._on_watch()

    def took_watched(self) -> tuple[Cause, int] | None:
        """What a watchpoint has noticed since the last time, and its address."""
        watched, self._watched = self._watched, None
        return watched
