"""What tracing needs from a guest's machine while it runs."""

from collections.abc import Callable, Sequence

from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Timed
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.host.contract import TIME_BASE, Shifted, blank_firing
from kinst.runtime.trap.trap import Firing


class GuestHost:
    """A guest's machine; implements `Host`."""

    def __init__(self, system: System, user_mode: Callable[[Firing], bool]) -> None:
        """`user_mode` says whether the CPU of a firing is in user mode."""
        self._system = system
        self.arch = system.arch
        self._user_mode = user_mode

    def now(self) -> int:
        """The time since the machine was switched on, in ns, plus the base."""
        return self._system.clock.now() + TIME_BASE

    def attach(self, timed: Timed) -> None:
        """See `Host`."""
        self._system.attach_observer(Shifted(timed))

    def cpus(self) -> Sequence[int]:
        """The CPUs that are on, with those that wait for an interrupt."""
        return [cpu.number for cpu in self._system.cpus if cpu.is_on]

    def firing(self, cpu: int, thread: int) -> Firing:
        """A firing with the registers of that CPU in the trap frame. The engine holds the state of one CPU: another one
        is loaded for this, and the scheduler switches back when it continues."""
        self._system.show(cpu)
        frame = self._system.trap.firing.frame
        return blank_firing(frame, cpu, thread, site=frame.regs[self.arch.pc])

    def is_user(self, firing: Firing) -> bool:
        """See `Host`."""
        return self._user_mode(firing)

    def spend(self, duration: int) -> None:
        """See `Host`."""
        self._system.clock.skip(self._system.clock.now() + duration)

    def finish(self, end: End) -> None:
        """See `Host`."""
        self._system.finish(end)
