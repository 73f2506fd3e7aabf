"""A probe that fires -> the key of its self-> variables: the CPU's stack stands for the thread.

An interrupt that runs on the stack of the interrupted thread has a key of its own until it returns; then the variables
of its handler are freed. A new thread on a used stack finds the variables that the last thread left.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.hits.thread_ranges import ThreadRange, ThreadRanges
from kinst.runtime.machine.interrupts import Interrupt
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.stack_regions import StackRegions

_INTERRUPTS: Final = -1 << 32  # keys of interrupts are below; above are addresses, and threads of the tracer (< 0)

WatchInterrupts = Callable[[Callable[[Interrupt], None], Callable[[Interrupt], None]], Callable[[Interrupt], None]]


class Contexts:
    """The threads of a guest, as far as their stacks distinguish them."""

    def __init__(
        self,
        regions: StackRegions,
        stack_pointer: int,
        reach: Callable[[Firing], int],
        where: Callable[[Interrupt], Firing],
        watch: WatchInterrupts,
    ) -> None:
        """Nothing is watched before `begin`.

        Args:
            regions: the guest's stacks.
            stack_pointer: the index of the stack pointer in the trap frame.
            reach: the highest address that the frames of a firing's stack are known to reach.
            where: gives the interrupted code, as if a probe fired there.
            watch: has two functions called when an interrupt begins and ends; returns a function that stops to watch
            one whose end was not seen.
        """
        self._regions, self._index = regions, stack_pointer
        self._reach, self._where, self._watch = reach, where, watch
        self._drop: Callable[[Interrupt], None] = lambda _interrupt: None
        self._forget: Callable[[int], None] = lambda _thread: None
        self._open: dict[int, list[Interrupt]] = {}  # by stack: the interrupts whose handlers run on it, innermost last
        self._keys: dict[Interrupt, int] = {}  # the interrupts whose handlers had variables
        self._count = 0
        self._changed: Callable[[], None] = lambda: None

    def begin(self, forget: Callable[[int], None]) -> None:
        """Start to watch: a program uses self->. `forget` frees what belongs to a key. Call it before the first run."""
        self._forget = forget
        self._drop = self._watch(self._begun, self._ended)

    @property
    def description(self) -> str:
        """What self-> is keyed by, for -v."""
        return f"the stack ({self._regions.description}); an interrupt on it has its own"

    def thread(self, firing: Firing) -> int:
        """The key for the variables of a firing."""
        if firing.thread < 0:
            return firing.thread
        sp = firing.frame.regs[self._index]
        stack = self._regions.known.get(sp)
        if stack is None:
            stack = self._regions.of(sp, lambda: self._reach(firing))
        return self._interrupted(stack, sp) if self._open else stack

    def ranges(self, changed: Callable[[], None]) -> ThreadRanges | None:
        """See `kinst.runtime.clauses.environment.GuestProfile`."""
        self._changed = changed
        self._regions.on_change(changed)
        return ThreadRanges(self._range)

    def _range(self, firing: Firing) -> ThreadRange | None:
        key, sp = self.thread(firing), firing.frame.regs[self._index]
        around = None if firing.thread < 0 else self._regions.around(sp)
        if around is None:
            return None
        low, high = around
        interrupts = self._open.get(self._regions.of(sp, lambda: self._reach(firing)))
        return ThreadRange(low, min(high, interrupts[-1].limit) if interrupts else high, key)

    def _interrupted(self, stack: int, sp: int) -> int:
        """The stack's own key, or the key of the interrupt whose handler runs on it."""
        interrupts = self._open.get(stack)
        while interrupts and sp > interrupts[-1].limit:  # its frame is gone, by longjmp or a switch
            self._drop(interrupts[-1])
            self._ended(interrupts[-1])
            interrupts = self._open.get(stack)
        if not interrupts:
            return stack
        innermost = interrupts[-1]
        if innermost not in self._keys:
            self._count += 1
            self._keys[innermost] = _INTERRUPTS - self._count
        return self._keys[innermost]

    def _begun(self, interrupt: Interrupt) -> None:
        stack = self._regions.of(interrupt.sp, lambda: self._reach(self._where(interrupt)))
        self._open.setdefault(stack, []).append(interrupt)
        self._changed()

    def _ended(self, interrupt: Interrupt) -> None:
        """Forget an interrupt that has ended, and all those that interrupted its handler."""
        self._changed()
        for stack, interrupts in self._open.items():
            if interrupt in interrupts:
                at = interrupts.index(interrupt)
                for over in interrupts[at:]:
                    if over is not interrupt:
                        self._drop(over)
                    if over in self._keys:
                        self._forget(self._keys.pop(over))
                del interrupts[at:]
                if not interrupts:
                    del self._open[stack]
                break
