"""Going backwards: a snapshot from before is restored, and the guest does again what it did, up to where it is to stop.

    scan   from a snapshot to where the debugger was: what would have stopped the guest last? If nothing would, the
           same from the snapshot before, up to this one
    go     from the newest snapshot before that place to it

What is done again is what was done, since the clock counts instructions and nobody types: a step backwards ends exactly
where a step forwards had begun. If it is not (which registers would show), the debugger is told, and no place is made
up. A snapshot is restored between two runs of the machine, so each way back ends the run (`End.PAUSED`), which whoever
runs it begins again (`restored`).
"""

from enum import Enum, auto
from typing import Final

from kinst.runtime.debugger.history import History, Moment, Place
from kinst.runtime.debugger.points import Points
from kinst.runtime.debugger.registers import Registers
from kinst.runtime.debugger.stops import Cause
from kinst.runtime.machine.clock import NANOSECONDS_PER_INSTRUCTION
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.system import System
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_WINDOW: Final = 64 * NANOSECONDS_PER_INSTRUCTION  # ns before a place in which all steps are noted
_NEAR: Final = 16 * _WINDOW  # ns from a snapshot to another that is worth taking


class Way(Enum):
    """How far back."""

    STEP = auto()  # an instruction of a CPU
    CONTINUE = auto()  # to a breakpoint, or an access that a watchpoint is for


@dataclass(frozen=True, slots=True)
class Back:
    """What bs and bc ask for."""

    way: Way
    cpu: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """A place to stop at, why, and the address of a watchpoint."""

    place: Place
    cause: Cause
    address: int = 0


@dataclass(frozen=True, slots=True)
class _Seen:
    """The latest time (ns) to which the guest has come, and the bytes that somebody had typed by then."""

    time: int
    typed: int


@dataclass(frozen=True, slots=True)
class _Scan:
    """From a snapshot to `end`, for what `asked` wants. Steps are noted from `window` (ns) on."""

    asked: Back
    start: Moment
    end: Place
    window: int = 0


class Backwards:
    """The way back of one debugger; implements `Timed`."""

    def __init__(self, system: System, history: History, registers: Registers, points: Points) -> None:
        """It is not on its way. Attach it as an observer of the machine."""
        self.history = history
        self._system, self._registers, self._points = system, registers, points
        self._scan: _Scan | None = None
        self._goal: Arrival | None = None  # where it goes
        self._next: Moment | None = None  # what is restored before the next run
        self._origin: tuple[Place, bytes] | None = None  # where the debugger was, and the registers there
        self._hit: Arrival | None = None  # the last in the scan
        self._trail: list[Arrival] = []  # steps of one CPU, one after the other
        self._trail_of: tuple[int, object] | None = None  # that CPU, and the watchpoints
        self._ran: int | None = None  # when the CPU has run in the scan, before the window
        self._seen: _Seen | None = None  # up to where the guest has been; None: it is there
        self._due: int | None = None  # the time that `advance` was called for
        self.has_failed = False  # whether the guest has not done the same again

    # -- what the debugger asks for -----------------------------------------------------------------------------------

    @property
    def is_under_way(self) -> bool:
        """Whether the guest is on a way back."""
        return self._scan is not None or self._goal is not None

    def changed(self) -> None:
        """The debugger has changed a register or memory: what comes now is not what came before."""
        self.history.changed()
        self._trail.clear()
        self._is_new(is_another=True)

    def check(self) -> None:
        """Raise UsageError if there is no way back."""
        why = self.history.why_not()
        if why is not None:
            raise UsageError(why)

    def begin(self, asked: Back) -> bool:
        """Set out; the run ends. False: this is the beginning. The CPU that has stopped is the current one."""
        here = self.history.here()
        self._origin, self.has_failed = (here, self._registers.general()), False
        if self._seen is None:
            self.history.pause()
            self._seen = _Seen(here.time, self.history.typed)
        known = self._known_step(asked, here)
        if known is not None:
            return self._go(known)
        start = self.history.before(here.time)
        if start is None:
            return self._go_to_beginning(here)
        window = max(here.time - _WINDOW, start.place.time)
        return self._look_from(_Scan(asked, start, here, window))

    def _known_step(self, asked: Back, here: Place) -> Arrival | None:
        """The step before, if it was noted on another way back."""
        if asked.way is not Way.STEP or self._trail_of != (asked.cpu, self._points.watched):
            return None
        at = next((at for at, one in enumerate(self._trail) if one.place == here), 0)
        return _step_back(self._trail[: at + 1]) if at else None

    def end(self) -> None:
        """It has arrived, or something else has stopped the guest."""
        self._scan = self._goal = None

    def restored(self) -> bool:
        """Between two runs: restore what the way begins with. False: there is nothing to restore, the run is over."""
        moment, self._next = self._next, None
        if moment is None:
            return False
        self.history.restore(moment)
        return True

    # -- the parts of the way -----------------------------------------------------------------------------------------

    def _look_from(self, scan: _Scan) -> bool:
        self._scan, self._goal, self._hit, self._ran = scan, None, None, None
        if scan.asked.way is Way.STEP:
            self._trail, self._trail_of = [], (scan.asked.cpu, self._points.watched)
        self._leave_for(scan.start)
        return True

    def _go(self, arrival: Arrival) -> bool:
        moment = self.history.towards(arrival.place)
        if moment is None:
            return self._go_to_beginning(arrival.place)
        self._scan, self._goal = None, arrival
        self._leave_for(moment)
        return True

    def _go_to_beginning(self, here: Place) -> bool:
        first = self.history.first
        if first is None or here.time < first.place.time or here == first.place:
            return False
        self._scan, self._goal = None, Arrival(first.place, Cause.BEGINNING)
        self._leave_for(first)
        return True

    def _leave_for(self, moment: Moment) -> None:
        self._next, self._due = moment, None
        self._system.finish(End.PAUSED)

    def _scanned(self, scan: _Scan) -> bool:
        """The end of a scan is reached: go to what it has found, or look farther back. False: nothing is behind it any
        more, since somebody has typed."""
        found = self._hit if scan.asked.way is Way.CONTINUE else _step_back(self._trail)
        if found is not None:
            return self._go(found)
        start, is_step = self.history.before(scan.start.place.time), scan.asked.way is Way.STEP
        if is_step and self._ran is not None and (start is not None or scan.window > scan.start.place.time):
            at = self._ran - _WINDOW
            near = self.history.before(at) or self.history.first or scan.start
            return self._look_from(_Scan(scan.asked, near, scan.end, max(at, near.place.time)))
        if start is None:
            return self._go_to_beginning(scan.end)
        if is_step:  # the CPU has not run since the snapshot
            return self._look_from(_Scan(scan.asked, start, scan.end, scan.start.place.time))
        return self._look_from(_Scan(scan.asked, start, scan.start.place))

    # -- while the guest does it again --------------------------------------------------------------------------------

    def stops_at_breakpoint(self) -> bool:
        """Whether a breakpoint is one of the things that are looked for."""
        return self._scan is not None and self._scan.asked.way is Way.CONTINUE

    @property
    def step(self) -> int | None:
        """The CPU whose next instruction is executed alone."""
        scan = self._scan
        is_noted = scan is not None and scan.asked.way is Way.STEP and self._system.clock.now() >= scan.window
        return scan.asked.cpu if scan is not None and is_noted else None

    def stopped(self, cause: Cause, address: int) -> None:
        """Something would have stopped the guest here, had it not been on its way back."""
        scan = self._scan
        if scan is None:
            return
        here = self.history.here()
        if scan.asked.way is Way.STEP:
            if self.step == here.cpu:
                self._trail.append(Arrival(here, cause, address))
        elif cause in (Cause.WRITTEN, Cause.READ, Cause.ACCESSED):
            before = Place(here.time - NANOSECONDS_PER_INSTRUCTION, here.cpu, None)
            self._hit = Arrival(before, cause, address)
        elif here != scan.end:
            self._hit = Arrival(here, cause)

    def about_to_run(self) -> Arrival | None:
        """The engine is about to run: whether it has arrived."""
        if self._next is not None:
            return None
        here, scan = self.history.here(), self._scan
        if scan is not None and scan.asked.way is Way.STEP and not self._trail and here.time >= scan.window:
            self._note_first_step(scan, here)
        return self._look(here, is_before=True)

    def has_run(self) -> Arrival | None:
        """The engine has run: whether it has arrived."""
        if self._next is not None:
            return None
        here, scan = self.history.here(), self._scan
        if scan is not None and here.cpu == scan.asked.cpu and here.time <= scan.window:
            self._ran = here.time
        return self._look(here, is_before=False)

    def goes_on(self) -> None:
        """The engine is about to run for the debugger: whether what comes was seen before."""
        if self._seen is not None and self.history.typed != self._seen.typed:
            self._is_new(is_another=True)
        elif self._seen is not None and self._system.clock.now() >= self._seen.time:
            self._is_new(is_another=False)

    def _is_new(self, *, is_another: bool) -> None:
        if self._seen is not None:
            self._seen = None
            self.history.go_on(is_another=is_another)

    def waits(self) -> Arrival | None:
        """All CPUs wait, or none runs yet: whether it has arrived."""
        if self._next is not None:
            return None
        is_idle = not any(one.is_on and not one.is_waiting for one in self._system.cpus)
        return self._look(self.history.here(), is_before=is_idle, is_idle=is_idle)

    def _note_first_step(self, scan: _Scan, here: Place) -> None:
        if here.cpu != scan.asked.cpu:
            return
        if here.time - scan.start.place.time > _NEAR:
            self.history.take()  # the next step backwards begins near it
        self._trail.append(Arrival(here, Cause.STEPPED))

    def _look(self, here: Place, *, is_before: bool, is_idle: bool = False) -> Arrival | None:
        scan, goal = self._scan, self._goal
        if scan is not None:
            if here == scan.end or (is_idle and here.time == scan.end.time):
                is_known = self._is_same(here) and self._scanned(scan)
                return None if is_known else self._lost(here)
            return self._lost(here) if here.time > scan.end.time else None
        if goal is None:
            return None
        if goal.place.pc is None:
            return goal if is_before and here.time >= goal.place.time else None
        if here == goal.place:
            return goal
        return self._lost(here) if here.time > goal.place.time else None

    def _is_same(self, here: Place) -> bool:
        """Whether the registers are what they were."""
        return self._origin is None or self._origin[0] != here or self._origin[1] == self._registers.general()

    def _lost(self, here: Place) -> Arrival:
        """The guest has not done the same again. What was noted is of no use."""
        self.has_failed = True
        self.changed()
        return Arrival(here, Cause.INTERRUPTED)

    # -- time ---------------------------------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """See `Timed`: where the engine has to stop."""
        if self._next is not None:
            return None
        now = self._system.clock.now()
        scan, goal = self._scan, self._goal
        times = [] if scan is None else [scan.end.time]
        if scan is not None and scan.asked.way is Way.STEP:
            times.append(scan.window)
        if goal is not None:
            times.append(goal.place.time)
        if self._seen is not None:
            times.append(self._seen.time)
        return min((time for time in times if time > now or time == now != self._due), default=None)

    def advance(self) -> None:
        """See `Timed`: the time has come. What is to be done is done when the debugger is asked."""
        self._due = self._system.clock.now()


def _step_back(trail: list[Arrival]) -> Arrival | None:
    """The place of a CPU before its last step, of which the last of the trail is the end."""
    if len(trail) < 2:
        return None
    last, before = trail[-1], trail[-2]
    return Arrival(before.place, last.cause, last.address)
