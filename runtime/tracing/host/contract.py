"""What tracing needs from the machine that runs: that of a guest, or one without a guest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.machine.device import Timed
from kinst.runtime.machine.idle_machine import IdleMachine
from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import NO_IMAGE_ARCH

# The machine's time begins at 0. Scripts test `self->ts` or `/start/` for a timestamp that was taken, and 0 would be
# none.
TIME_BASE: Final = 1_000_000_000


class Host(Protocol):
    """The machine, as tracing sees it."""

    @property
    def arch(self) -> ArchFacts:
        """The facts about its instruction set."""
        ...

    def now(self) -> int:
        """The time in ns, never 0."""
        ...

    def attach(self, timed: Timed) -> None:
        """Call `timed.advance` at its deadlines, which are times of `now`."""
        ...

    def cpus(self) -> Sequence[int]:
        """The numbers of the CPUs that are on."""
        ...

    def firing(self, cpu: int, thread: int) -> Firing:
        """What a probe sees that fires on `cpu` between two instructions; valid until the next call."""
        ...

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU of a firing is in user mode."""
        ...

    def spend(self, duration: int) -> None:
        """Let `duration` ns pass in which no CPU runs."""
        ...

    def finish(self, end: End) -> None:
        """End the run."""
        ...


class Snapshotted(Protocol):
    """A guest that has snapshots: `kinst.runtime.tracing.guests.snapshotting.GuestSnapshots`."""

    def check(self) -> None:
        """Raise KinstError if it can have none, whatever it does."""
        ...

    def ask(self, path: Path) -> None:
        """Write a snapshot at what fires now."""
        ...


class Shifted:
    """A `Timed` whose deadlines are in tracing's time, adapted to the machine's time."""

    def __init__(self, timed: Timed) -> None:
        self._timed = timed

    def deadline(self) -> int | None:
        """When it is due, in the machine's time (ns)."""
        deadline = self._timed.deadline()
        return None if deadline is None else deadline - TIME_BASE

    def advance(self) -> None:
        """Do what is due."""
        self._timed.advance()


def blank_firing(frame: TrapFrame, cpu: int, thread: int, *, site: int = 0) -> Firing:
    """A firing that was not caused by an instruction of the guest."""
    enabling = Enabling(0, lambda _firing: None, lambda _firing, _index: 0, 0)
    return Firing(frame, enabling, cpu=cpu, thread=thread, site=site)


class NoGuest:
    """No machine, for programs that need no image, or whose image runs elsewhere; implements `Host`."""

    def __init__(self, clock: ClockKind, arch: ArchFacts = NO_IMAGE_ARCH, frame: TrapFrame | None = None) -> None:
        """`frame` is that of all firings; None: all registers are zero, and there is no memory."""
        self.machine = IdleMachine(clock)
        self.arch = arch
        self._frame = frame or TrapFrame(
            [0] * len(arch.registers), _nothing_there, _no_store, lambda _number, _value: None
        )

    def now(self) -> int:
        """The time since the start, in ns, plus the base."""
        return self.machine.now() + TIME_BASE

    def attach(self, timed: Timed) -> None:
        """See `Host`."""
        self.machine.attach_observer(Shifted(timed))

    def cpus(self) -> Sequence[int]:
        """A single one, on which timers fire."""
        return [0]

    def firing(self, cpu: int, thread: int) -> Firing:
        """A firing with the registers that are known."""
        return blank_firing(self._frame, cpu, thread)

    def is_user(self, firing: Firing) -> bool:
        """False: there are no modes."""
        return False

    def spend(self, duration: int) -> None:
        """See `Host`."""
        self.machine.spend(duration)

    def finish(self, end: End) -> None:
        """See `Host`."""
        self.machine.finish(end)


def _nothing_there(address: int, _size: int) -> int:
    raise PageFault(address, Access.READ, 0)


def _no_store(address: int, _size: int, _value: int) -> None:
    raise PageFault(address, Access.WRITE, 0)
