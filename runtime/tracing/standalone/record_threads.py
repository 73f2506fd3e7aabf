"""A record -> the key of its self-> variables where no operating system is known: a thread is identified by its
stack."""

from collections.abc import Callable

from kinst.runtime.hits.thread_ranges import ThreadRanges
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.stack_regions import StackRegions

_ALL = 0  # the key of all, where records have no stack pointer


class RecordThreads:
    """Implements `kinst.runtime.clauses.profiles.Threads`. An interrupt is taken for the thread on whose stack it
    runs."""

    description = "the stack, as far as its frames reach; an interrupt on it shares its variables"

    def __init__(
        self, regions: StackRegions, stack_pointer: int, reach: Callable[[Firing], int], task: Callable[[], int]
    ) -> None:
        """`stack_pointer` is its index in the trap frame, `reach` gives the end of a firing's frames, and `task` the
        system's current task, which identifies threads better; 0: there is none."""
        self._regions, self._index, self._reach, self._task = regions, stack_pointer, reach, task

    def begin(self, forget: Callable[[int], None]) -> None:
        """No thread is known to end."""

    def thread(self, firing: Firing) -> int:
        """See `Threads`."""
        if firing.thread < 0 or self._task():
            return firing.thread
        try:
            sp = firing.regs[self._index]
        except Fault:
            return _ALL
        known = self._regions.known.get(sp)
        return self._regions.of(sp, lambda: self._reach(firing)) if known is None else known

    def ranges(self, changed: Callable[[], None]) -> ThreadRanges | None:
        """None: there is no engine."""
        return None
