"""Readings of a guest's memory, once or periodically -> its probes fire for what is new in each."""

import math
import time
from collections.abc import Callable

from kinst.runtime.machine.configuration import End
from kinst.runtime.readout.memory import Source
from kinst.runtime.readout.placement import AbsentError, Placement
from kinst.runtime.tracing.host.contract import NoGuest
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.running import PAUSES
from kinst.runtime.tracing.standalone.findings import Found
from kinst.runtime.tracing.standalone.probes import StandaloneProbes
from kinst.targets.errors import MachineError


class Readings:
    """The readings of one run. Live, each interval brings what is new; also a `Timed` of the host."""

    def __init__(
        self,
        source: Source,
        interval: int | None,
        end: float,
        placement: Placement,
        probes: StandaloneProbes,
        host: NoGuest,
        warn: Callable[[str], None],
    ) -> None:
        """Nothing is read yet. `interval` in ns; None: there is one reading. `end`, of time.monotonic(): when the time
        of the command is over. `warn` is called if the image is not in memory yet."""
        self._source, self._interval, self._end = source, interval, end
        self._placement, self._probes, self._host, self._warn = placement, probes, host, warn
        self._is_there = self._is_awaited = False
        self._next = 0
        self._first: Found | None = None  # also where the image is awaited
        self._after: Callable[[], None] = _nothing  # called after each reading, while they run

    def begin(self) -> None:
        """The first reading, before BEGIN fires: errors come first. Raises MachineError."""
        if self._first is None and not self._is_awaited:
            self._first = self._read(is_last=self._interval is None)

    def run(self, limits: Limits, after: Callable[[], None]) -> End:
        """Fire for the first reading, and live for more until something ends it. `after` is called after each, and
        between them."""
        assert self._first is not None or self._is_awaited, "begin() comes first"
        self._after = after
        self._fire(self._first)
        machine = self._host.machine
        if self._interval is None:
            return machine.end or End.NOTHING_LEFT
        self._next = self._host.now() + self._interval
        self._host.attach(self)
        try:
            left = limits.wall_timeout if math.isinf(self._end) else max(0, int((self._end - time.monotonic()) * 1e9))
            end = machine.run(after, limits.timeout, left)
            if end in PAUSES:
                self._fire(self._read(is_last=True))
        except MachineError:
            if time.monotonic() < self._end:
                raise
            return End.WALL_TIMEOUT  # a reading was cut off
        return end

    def deadline(self) -> int:
        """When the next reading is due."""
        return self._next

    def advance(self) -> None:
        """Read and fire. Readings that were missed because one took long are not made up for."""
        self._fire(self._read(is_last=False))
        assert self._interval is not None
        self._next = self._host.now() + self._interval

    def _read(self, *, is_last: bool) -> Found | None:
        """None: the image is not there yet. Raises MachineError: memory cannot be read, or the image is not in it at
        the last time, or any more."""
        try:
            with self._source.open() as memory:
                found = self._probes.find(self._placement.reader(memory), is_last=is_last)
        except AbsentError as error:
            if is_last or self._is_there:
                raise
            if not self._is_awaited:
                self._is_awaited = True
                self._warn(f"{error}; it is awaited")
            return None
        self._is_there = True
        return found

    def _fire(self, found: Found | None) -> None:
        if found is not None:
            self._probes.fire(found)
        self._after()


def _nothing() -> None:
    """The default: nothing is called between readings."""
