"""Deadlines in the host's time -> calls between two blocks of the guest's code, while its owner runs the engine.

A thread waits for the deadline and asks the hook at blocks to call at the next one. It does nothing else itself, since
only the thread that runs the engine may use it. While the guest does not run, no timer fires.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.engine.native_hooks import BlockMarks
from kinst.runtime.machine.clock import HostClock
from kinst.runtime.machine.device import Timed

_IDLE: Final = 1_000_000_000  # ns between two queries of deadlines where there are none


class Timers:
    """Timers, and what is to be done at the next opportunity."""

    def __init__(self, marks: BlockMarks) -> None:
        """`marks` are those of a hook of its own."""
        self._marks = marks
        marks.looks.append(self._look)
        self._clock = HostClock(marks.look_soon)
        self._timed: list[Timed] = []
        self._later: list[Callable[[], None]] = []

    def now(self) -> int:
        """Nanoseconds since tracing began."""
        return self._clock.now()

    def skip(self, duration: int) -> None:
        """Advance the clock by so many ns in which nothing happens."""
        self._clock.skip(self._clock.now() + duration)

    def attach(self, timed: Timed) -> None:
        """Call `timed.advance` at its deadlines, which are times of `now`."""
        self._timed.append(timed)
        self._wait()

    def soon(self, act: Callable[[], None]) -> None:
        """Call `act` once, before the next block of the guest's code."""
        self._later.append(act)
        self._marks.look_soon()

    def close(self) -> None:
        """Stop all timers."""
        self._timed.clear()
        self._clock.close()

    def _look(self, _address: int, _size: int) -> None:
        self._marks.rest()
        later, self._later = self._later, []  # what these add is for the block after this one
        for act in later:
            act()
        now = self._clock.now()
        for timed in self._timed:
            deadline = timed.deadline()
            if deadline is not None and deadline <= now:
                timed.advance()
        if self._timed:
            self._wait()

    def _wait(self) -> None:
        deadlines = [deadline for timed in self._timed if (deadline := timed.deadline()) is not None]
        self._clock.begin(max(0, min(deadlines) - self._clock.now()) if deadlines else _IDLE)
