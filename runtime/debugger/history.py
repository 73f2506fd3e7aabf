"""Snapshots of a guest while it is debugged: where a run backwards begins.

The guest's time, under the instruction clock, orders all that its CPUs do. A snapshot is taken when a debugger has
come, and whenever so many instructions were executed since the last one. Of too many, those are dropped that leave the
smallest gap for how long ago they are (as rr does), so that what has just happened is near a snapshot.
"""

from bisect import bisect_right
from dataclasses import replace
from typing import Final, Protocol

from kinst.runtime.machine.snapshots.snapshot import Snapshot
from kinst.runtime.machine.system import System
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

_INTERVAL: Final = 40_000_000  # instructions: a fraction of a second, twice of which a way back takes
_MOST: Final = 24  # snapshots


class Rewindable(Protocol):
    """A guest that has snapshots in memory."""

    def why_not(self) -> str | None:
        """Why it cannot go back; None: it can."""
        ...

    def take(self) -> Snapshot:
        """The guest as it is. Raises MachineError: not at the moment."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Return to it, between two runs."""
        ...

    def pause(self) -> None:
        """What the guest does from now on was seen before: its probes have fired."""
        ...

    def go_on(self, *, is_another: bool) -> None:
        """It is new from now on; `is_another`: it is not what came then."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run is: the time (ns), the CPU that is running, and its PC. An interrupt changes the PC alone. None: just
    before the first instruction at that time or later, of whatever CPU."""

    time: int
    cpu: int
    pc: int | None


@dataclass(frozen=True, slots=True)
class Moment:
    """A snapshot: where it was taken, and how many bytes the guest had printed by then, had taken of
    what somebody types, and how many instructions it had executed."""

    place: Place
    snapshot: Snapshot
    printed: int
    typed: int
    executed: int


class History:
    """The snapshots of one guest, by time."""

    def __init__(self, system: System, guest: Rewindable) -> None:
        """None yet."""
        self._system, self._guest = system, guest
        self._moments: list[Moment] = []
        self._repeated = 0  # instructions that were executed once more
        self._executed = 0  # instructions, at the last snapshot that was taken or restored
        self._printed = self._shown = 0  # bytes of the console, and those that somebody has seen

    def why_not(self) -> str | None:
        """Why there is no way back; None: there is one."""
        return self._guest.why_not()

    # -- the console --------------------------------------------------------------------------------------------------

    def fresh(self, data: bytes) -> bytes:
        """What of the guest's output nobody has seen yet, as it is printed."""
        known = max(0, self._shown - self._printed)
        self._printed += len(data)
        self._shown = max(self._shown, self._printed)
        return data[known:]

    # -- taking -------------------------------------------------------------------------------------------------------

    def here(self) -> Place:
        """Where the run is."""
        return Place(self._system.clock.now(), self._system.current.number, self._system.engine.pc())

    def note(self) -> None:
        """The engine is about to run: take a snapshot if it is time for one."""
        if (not self._moments or self.executed - self._executed >= _INTERVAL) and self._guest.why_not() is None:
            self.take()

    def take(self) -> None:
        """Take a snapshot, if there is none here, and if it is possible at the moment. Just before the engine runs: the
        turn goes on from there as it does now."""
        place, executed = self.here(), self.executed
        if any(one.place == place for one in self._moments):
            return
        try:
            taken = self._guest.take()
        except MachineError:  # a device is in the middle of something: an instruction later
            return
        at = bisect_right(self._moments, place.time, key=lambda one: one.place.time)
        before = self._moments[at - 1].snapshot if at else None
        self._moments.insert(at, Moment(place, _shared(taken, before), self._printed, self.typed, executed))
        self._executed = executed
        if len(self._moments) > _MOST:
            self._drop_one()

    def forget(self) -> None:
        """Drop all of them."""
        self._moments.clear()

    def changed(self) -> None:
        """What was before does not lead to what is now: a debugger has changed it. What comes now is printed, too."""
        self._moments.clear()
        self._shown = self._printed

    @property
    def executed(self) -> int:
        """The instructions up to here; of those that were executed again, as many as the first time."""
        counter = self._system.engine.counter
        assert counter is not None, "instructions of a machine that is debugged are counted"
        return counter.executed - self._repeated

    def _drop_one(self) -> None:
        times, last = [one.place.time for one in self._moments], self._moments[-1].place.time
        gaps = [(times[at + 1] - times[at - 1]) / (last - times[at] + 1) for at in range(1, len(times) - 1)]
        del self._moments[1 + gaps.index(min(gaps))]

    # -- going back ---------------------------------------------------------------------------------------------------

    @property
    def first(self) -> Moment | None:
        """The oldest one."""
        return next((one for one in self._moments if one.typed == self.typed), None)

    @property
    def typed(self) -> int:
        """What somebody has typed since a snapshot was taken cannot be typed again: that snapshot is of no use."""
        return self._system.serial_line.taken

    def before(self, time: int) -> Moment | None:
        """The newest one before a time."""
        usable = (one for one in reversed(self._moments) if one.typed == self.typed)
        return next((one for one in usable if one.place.time < time), None)

    def towards(self, place: Place) -> Moment | None:
        """The newest one from which the guest gets to a place."""
        for one in reversed(self._moments):
            if one.typed != self.typed:
                continue
            is_there = one.place == place or (place.pc is None and one.place.time == place.time)
            if is_there or one.place.time < place.time:
                return one
        return None

    def pause(self) -> None:
        """See `Rewindable`."""
        self._guest.pause()

    def go_on(self, *, is_another: bool) -> None:
        """See `Rewindable`."""
        self._guest.go_on(is_another=is_another)

    def restore(self, moment: Moment) -> None:
        """Return to it, between two runs."""
        self._guest.restore(moment.snapshot)
        self._printed, self._executed = moment.printed, moment.executed
        self._repeated += self.executed - moment.executed


def _shared(taken: Snapshot, before: Snapshot | None) -> Snapshot:
    """The same snapshot, which shares the pages with the one before it that have not changed in between."""
    if before is None:
        return taken
    old = before.pages
    pages = {number: old[number] if old.get(number) == page else page for number, page in taken.pages.items()}
    return replace(taken, pages=pages)
