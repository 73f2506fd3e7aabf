"""Several devices that act by themselves at certain times."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kinst.runtime.machine.device import Timed


class TimedDevices:
    """Devices in the order in which they were attached."""

    def __init__(self) -> None:
        self._all: list[Timed] = []

    def attach(self, timed: Timed) -> None:
        """Add a device."""
        self._all.append(timed)

    @contextmanager
    def held(self) -> Iterator[None]:
        """In this context none acts: it has no device."""
        held, self._all = self._all, []
        try:
            yield
        finally:
            self._all = held

    def each(self, call: Callable[[Timed], None]) -> None:
        """Call a function with each of them."""
        for timed in self._all:
            call(timed)

    def advance(self, now: int) -> int | None:
        """Call `advance` of those that are due at `now`. Returns the next deadline (ns), or None."""
        earliest: int | None = None
        for timed in self._all:
            deadline = timed.deadline()
            if deadline is not None and deadline <= now:
                timed.advance()
                deadline = timed.deadline()
            if deadline is not None and (earliest is None or deadline < earliest):
                earliest = deadline
        return earliest
