"""A machine without an image: only time passes. For programs that need none, such as BEGIN and tick-1s clauses."""

import time
from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.machine.device import Timed
from kinst.runtime.machine.timed import TimedDevices

_NAP: Final = 20_000_000  # ns: the longest that Ctrl-C has to wait


class IdleMachine:
    """The part of `kinst.runtime.machine.system.System` that tracing uses, without a CPU."""

    def __init__(self, clock: ClockKind) -> None:
        self._is_virtual = clock is ClockKind.ICOUNT
        self._start = time.monotonic_ns()
        self._skipped = 0
        self._observers = TimedDevices()
        self._sleep: Callable[[float], None] = time.sleep
        self.end: End | None = None  # why the run is to end

    def now(self) -> int:
        """Nanoseconds since the start. Virtual time passes only while everything waits."""
        return self._skipped if self._is_virtual else time.monotonic_ns() - self._start

    def attach_observer(self, timed: Timed) -> None:
        """Call `timed.advance` at its deadlines."""
        self._observers.attach(timed)

    def sleep_by(self, sleep: Callable[[float], None]) -> None:
        """Wait by this function of seconds, which may return early because something is due at once."""
        self._sleep = sleep

    def stand_still(self, duration: int) -> None:
        """Take `duration` ns of the host's time, which have passed, out of the machine's."""
        self._start += 0 if self._is_virtual else duration

    def spend(self, duration: int) -> None:
        """Let `duration` ns pass; deadlines wait."""
        if self._is_virtual:
            self._skipped += duration
        else:
            time.sleep(duration / 1e9)

    def finish(self, end: End) -> None:
        """End the run."""
        if self.end is None:
            self.end = end

    def run(self, after_turn: Callable[[], None], timeout: int | None = None, wall_timeout: int | None = None) -> End:
        """Wait for deadlines until the run is finished, a timeout (ns) has passed, or nothing can happen any more.
        `after_turn` is called now and then."""
        limit = None if timeout is None else self.now() + timeout
        wall_limit = None if wall_timeout is None else time.monotonic_ns() + wall_timeout
        while self.end is None:
            deadline = self._observers.advance(self.now())
            after_turn()
            if self.end is not None:
                break
            if limit is not None and self.now() >= limit:
                return End.TIMEOUT
            if wall_limit is not None and time.monotonic_ns() >= wall_limit:
                return End.WALL_TIMEOUT
            if deadline is None:
                return End.NOTHING_LEFT
            self._wait(deadline if limit is None else min(limit, deadline))
        end, self.end = self.end, None
        return end

    def _wait(self, until: int) -> None:
        left = max(0, until - self.now())
        if self._is_virtual:
            self._skipped += left
        else:
            self._sleep(min(left, _NAP) / 1e9)
