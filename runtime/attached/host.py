"""A Qiling object -> the machine as tracing sees it. See `kinst.runtime.tracing.host.contract.Host`.

Time is the host's. There is one CPU; threads of the guest are those of Qiling's OS layer.
"""

from collections.abc import Callable, Sequence

from kinst.runtime.attached.guest import AttachedGuest
from kinst.runtime.attached.timers import Timers
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Timed
from kinst.runtime.tracing.host.contract import TIME_BASE, Shifted, blank_firing
from kinst.runtime.trap.trap import Firing
from kinst.runtime.trap.trap_frame import TrapFrame


class AttachedHost:
    """The machine."""

    def __init__(
        self,
        guest: AttachedGuest,
        frame: TrapFrame,
        read: Callable[[], int],
        timers: Timers,
        end: Callable[[End], None],
    ) -> None:
        """`read` fills the frame; `end` is called when a clause ends the run."""
        self.arch = guest.arch
        self._frame, self._read = frame, read
        self._timers = timers
        self.finish = end

    def now(self) -> int:
        """Nanoseconds since tracing began, plus `TIME_BASE`."""
        return self._timers.now() + TIME_BASE

    def attach(self, timed: Timed) -> None:
        """See `Host`."""
        self._timers.attach(Shifted(timed))

    def cpus(self) -> Sequence[int]:
        """One CPU."""
        return [0]

    def firing(self, cpu: int, thread: int) -> Firing:
        """A firing with the registers as they are now."""
        self._read()
        return blank_firing(self._frame, cpu, thread, site=self._frame.regs[self.arch.pc])

    def is_user(self, firing: Firing) -> bool:
        """False: stack() and arg0 of timers are those of the traced image, whatever mode it runs in."""
        return False

    def spend(self, duration: int) -> None:
        """See `Host`."""
        self._timers.skip(duration)
