"""What acts by itself at certain times, together."""

from collections.abc import Callable

from kinst.runtime.machine.device import Timed


class TimedDevices:
    """Devices in the order in which they were attached."""

    def __init__(self) -> None:
        self._all: list[Timed] = []

    def attach(self, timed: Timed) -> None:
        """One more."""
        self._all.append(timed)

    def each(self, look: Callable[[Timed], None]) -> None:
        """Look at all of them."""
        for timed in self._all:
            look(timed)

    def advance(self, now: int) -> int | None:
        """Let those act that are due at `now`. Returns the next deadline (ns), or None."""
        earliest: int | None = None
        for timed in self._all:
            deadline = timed.deadline()
            if deadline is not None and deadline <= now:
                timed.advance()
                deadline = timed.deadline()
            if deadline is not None and (earliest is None or deadline < earliest):
                earliest = deadline
        return earliest
