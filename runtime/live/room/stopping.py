"""Stops of a guest, one after the other, and what is done at each -> a guest that makes them and then runs on."""

from collections.abc import Generator

from kinst.runtime.live.room.debugger import Debugger

Stops = Generator[tuple[int, ...], int, None]  # where to stop next; is sent the breakpoint that was hit


class Stopping:
    """Lets a guest stop where it is to; implements `kinst.runtime.live.room.driving.Follows`."""

    def __init__(self, stops: Stops, counter: int, debugger: Debugger) -> None:
        """The guest is paused and has not begun. `counter`: the program counter's number for gdb. Raises StubError."""
        self._stops, self._counter, self._debugger = stops, counter, debugger
        self._breakpoints = next(stops)
        debugger.set_breakpoints(self._breakpoints)

    def check(self) -> None:
        """See `Follows`: what lacks the room shows itself."""

    def at_stop(self) -> None:
        """See `Follows`. Raises MachineError: what a stop is for cannot be done, or QEMU is gone."""
        at = self._debugger.register(self._counter)
        if at in self._breakpoints:
            try:
                self._breakpoints = self._stops.send(at)
            except StopIteration:
                self._debugger.leave()
                return
            self._debugger.set_breakpoints(self._breakpoints)
        self._debugger.go_on(at)
