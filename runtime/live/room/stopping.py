"""Stops of a guest, one after the other, and what is done at each -> a guest that makes them and then runs on."""

from collections.abc import Generator
from typing import Final

from kinst.runtime.live.room.debugger import Debugger
from kinst.targets.values import dataclass

_OFTEN: Final = 500_000  # ns between looks at a guest that may be at a breakpoint
_SELDOM: Final = 10_000_000  # the same if that is not soon


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a guest is to stop next, at one of some breakpoints. `is_soon`: in the same second, so that it is worth to
    look often."""

    breakpoints: tuple[int, ...]
    is_soon: bool = True


Stops = Generator[Stop, int, None]  # is sent the breakpoint that was hit


class Stopping:
    """Lets a guest stop where it is to; implements `kinst.runtime.live.room.driving.Follows`."""

    def __init__(self, stops: Stops, counter: int, debugger: Debugger) -> None:
        """The guest is paused and has not begun. `counter`: the program counter's number for gdb. Raises StubError."""
        self._stops, self._counter, self._debugger = stops, counter, debugger
        self._stop = next(stops)
        debugger.set_breakpoints(self._stop.breakpoints)

    @property
    def interval(self) -> int:
        """See `Follows`."""
        return _OFTEN if self._stop.is_soon else _SELDOM

    def check(self) -> None:
        """See `Follows`: what lacks the room shows itself."""

    def at_stop(self) -> None:
        """See `Follows`. Raises MachineError: what a stop is for cannot be done, or QEMU is gone."""
        at = self._debugger.register(self._counter)
        if at in self._stop.breakpoints:
            try:
                self._stop = self._stops.send(at)
            except StopIteration:
                self._debugger.leave()
                return
            self._debugger.set_breakpoints(self._stop.breakpoints)
        self._debugger.go_on(at)
