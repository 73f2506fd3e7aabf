"""A machine that is watched, ours or a QEMU -> what a sample has of it, and how it is paused."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.serial_line import SerialLine
from kinst.runtime.top.sample import CpuView
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.host.ending import CpuPlace, CpuState
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.targets.values import dataclass
from kinst.targets.visible import visible

if TYPE_CHECKING:
    from kinst.runtime.live.building import LiveTraced


class WatchedMachine(Protocol):
    """What is watched. All is called in the guest's thread, when no instruction is being executed by us."""

    @property
    def prepared(self) -> Prepared:
        """The image."""
        ...

    @property
    def name(self) -> str:
        """For the screen."""
        ...

    @property
    def serial_line(self) -> SerialLine:
        """Where keys are sent."""
        ...

    def now(self) -> int:
        """The guest's time in ns."""
        ...

    def cpus(self) -> Sequence[CpuView]:
        """The CPUs; none if they are not known."""
        ...

    def tasks(self) -> Sequence[TaskState]:
        """The tasks of the guest's operating system; none if they are not known."""
        ...

    def pause(self) -> None:
        """Called before the guest stands still."""
        ...

    def go_on(self, duration: int) -> None:
        """Called after it has stood still for that many ns of the host's time."""
        ...


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """Our machine, which stands still while its thread does."""

    guest: Guest

    @property
    def prepared(self) -> Prepared:
        """See `WatchedMachine`."""
        return self.guest.prepared

    @property
    def name(self) -> str:
        """See `WatchedMachine`."""
        return self.guest.prepared.facts.name

    @property
    def serial_line(self) -> SerialLine:
        """See `WatchedMachine`."""
        return self.guest.system.serial_line

    def now(self) -> int:
        """See `WatchedMachine`."""
        return self.guest.system.clock.now()

    def cpus(self) -> Sequence[CpuView]:
        """See `WatchedMachine`."""
        system = self.guest.system
        current = system.current
        found = tuple(map(self._cpu, system.cpus, self.guest.whereabouts.places()))
        system.show(current.number)
        return found

    def tasks(self) -> Sequence[TaskState]:
        """See `WatchedMachine`."""
        return tuple(self.guest.surroundings.profile.tasks())

    def pause(self) -> None:
        """See `WatchedMachine`."""

    def go_on(self, duration: int) -> None:
        """See `WatchedMachine`."""
        self.guest.system.clock.stand_still(duration)

    def _cpu(self, cpu: VirtualCpu, place: CpuPlace) -> CpuView:
        if place.state is CpuState.OFF:
            return CpuView(place, "", "")
        surroundings, system = self.guest.surroundings, self.guest.system
        firing = surroundings.host.firing(cpu.number, cpu.number)
        register, mask, _ = system.arch.user_mode
        bits = system.engine.live.get(register) if isinstance(register, str) else firing.regs[register]
        profile, task = surroundings.profile, ""
        if not profile.why_not("pid") and (name := profile.string(firing, "execname")):
            task = f"{visible(name.decode(errors='backslashreplace'))}[{profile.integer(firing, 'tid')}]"
        return CpuView(place, system.arch.mode_names.get(bits & mask, ""), task)


@dataclass(frozen=True, slots=True)
class LiveMachine:
    """A QEMU. What its CPUs and tasks do is not asked: each question would stop them."""

    traced: "LiveTraced"

    @property
    def prepared(self) -> Prepared:
        """See `WatchedMachine`."""
        return self.traced.prepared

    @property
    def name(self) -> str:
        """See `WatchedMachine`."""
        return "QEMU"

    @property
    def serial_line(self) -> SerialLine:
        """See `WatchedMachine`."""
        return self.traced.guest.serial_line

    def now(self) -> int:
        """See `WatchedMachine`."""
        return self.traced.guest.clock.now()

    def cpus(self) -> Sequence[CpuView]:
        """See `WatchedMachine`."""
        return ()

    def tasks(self) -> Sequence[TaskState]:
        """See `WatchedMachine`."""
        return ()

    def pause(self) -> None:
        """See `WatchedMachine`."""
        self.traced.guest.pause()

    def go_on(self, duration: int) -> None:
        """See `WatchedMachine`."""
        self.traced.guest.clock.stand_still(duration)
        self.traced.guest.go_on()
