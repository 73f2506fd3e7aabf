"""What tracing needs of the machine that runs: a guest's, or none at all."""

from collections.abc import Sequence
from typing import Final, Protocol

from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.machine.device import Timed
from kinst.runtime.machine.idle_machine import IdleMachine
from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import NO_IMAGE_ARCH

# The machine's time begins at zero, and scripts take a timestamp of zero for one that was not taken.
TIME_BASE: Final = 1_000_000_000


class Host(Protocol):
    """The machine, as tracing sees it."""

    @property
    def arch(self) -> ArchFacts:
        """Its instruction set."""
        ...

    def now(self) -> int:
        """Time in ns, never 0."""
        ...

    def attach(self, timed: Timed) -> None:
        """Call `timed.advance` at its deadlines, which are times of `now`."""
        ...

    def cpus(self) -> Sequence[int]:
        """CPUs that are on."""
        ...

    def firing(self, cpu: int, thread: int) -> Firing:
        """What a probe sees that fires on `cpu` between two instructions; valid until the next is asked for."""
        ...

    def is_user(self, firing: Firing) -> bool:
        """Whether that CPU is in user mode."""
        ...

    def spend(self, duration: int) -> None:
        """Let so many ns pass in which nothing happens."""
        ...

    def finish(self, end: End) -> None:
        """End the run."""
        ...


class Shifted:
    """A `Timed` of tracing's time in the machine's time."""

    def __init__(self, timed: Timed) -> None:
        self._timed = timed

    def deadline(self) -> int | None:
        """When it is due, in the machine's time."""
        deadline = self._timed.deadline()
        return None if deadline is None else deadline - TIME_BASE

    def advance(self) -> None:
        """It is."""
        self._timed.advance()


def blank_firing(frame: TrapFrame, cpu: int, thread: int) -> Firing:
    """A firing that no instruction of the guest caused."""
    firing = Firing(frame, Enabling(0, lambda _firing: None, lambda _firing, _index: 0, 0))
    firing.cpu, firing.thread = cpu, thread
    return firing


class NoGuest:
    """No machine: programs that need no image."""

    def __init__(self, clock: ClockKind) -> None:
        self.machine = IdleMachine(clock)
        self.arch = NO_IMAGE_ARCH
        self._frame = TrapFrame([0] * len(self.arch.registers), _nothing_there, _no_store, lambda _number, _value: None)

    def now(self) -> int:
        """Time since the start, from a base."""
        return self.machine.now() + TIME_BASE

    def attach(self, timed: Timed) -> None:
        """See `Host`."""
        self.machine.attach_timed(Shifted(timed))

    def cpus(self) -> Sequence[int]:
        """One, on which timers fire."""
        return [0]

    def firing(self, cpu: int, thread: int) -> Firing:
        """All registers are zero."""
        return blank_firing(self._frame, cpu, thread)

    def is_user(self, firing: Firing) -> bool:
        """There are no modes."""
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
