"""A guest that makes no progress -> a warning while it runs: where it is, what it does, and what it lacks.

It repeats the same faults (`Progress`), or it spins: for a second its only running CPU has gone through the same few
states of its registers, and no interrupt has come. A guest that has finished, or waits for input, looks just like that.
So a spin is reported only with a sign that it is a failure: it began with a fault, the guest polls an address where no
device answers, or it has never printed anything.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from kinst.rewriter.arch.registry import dissector
from kinst.runtime.machine.events.progress import Fault
from kinst.runtime.machine.system import System
from kinst.runtime.machine.unclaimed import nothing_at, unclaimed_around
from kinst.runtime.tracing.host.ending import CpuPlace, Stuck
from kinst.runtime.tracing.host.whereabouts import Whereabouts
from kinst.runtime.tracing.timers.periodic_check import PeriodicCheck

_PERIOD: Final = 50_000_000  # ns of the machine's time between two checks
_SPIN: Final = 1_000_000_000  # ns without a new state
_STATES: Final = 16  # the most states of a loop at the times of checks
_ASKED: Final = 1000  # reads of an address where no device answers


class StuckWatch:
    """Checks between two turns of the CPUs, so rarely that it costs nothing."""

    def __init__(self, system: System, whereabouts: Whereabouts, warn: Callable[[str], None]) -> None:
        """`warn` is called once, with the warning."""
        self._system, self._whereabouts, self._warn = system, whereabouts, warn
        self._pace = PeriodicCheck(_PERIOD)
        self._states: set[tuple[int, ...]] = set()
        self._since = self._unanswered = 0  # when the newest of the states was seen, and reads by then
        self._has_printed = False
        self.found: Stuck | None = None

    def on_console(self) -> None:
        """The guest prints something."""
        self._has_printed = True

    def begin_anew(self) -> None:
        """Between two runs: the machine is as it was at an earlier time."""
        self._states.clear()
        if self.found is None:
            self._pace.begin()

    def check(self) -> None:
        """Warn if the guest makes no progress."""
        now = self._system.clock.now()
        if not self._pace.is_due(now):
            return
        circle = self._system.progress.circle
        found = self._spin(now) if circle is None else self._circle(circle)
        if found is not None:
            self.found = found
            self._pace.stop()
            self._warn(str(found))

    # -- faults -------------------------------------------------------------------------------------------------------

    def _circle(self, fault: Fault) -> Stuck:
        what = "faults again and again in its own fault handler" if fault.is_nested else "faults again and again"
        place = self._whereabouts.at(self._system.current, fault.pc)
        return self._stuck(what, place, fault.what + self._emptiness(fault.pc), self._nothing(fault.address))

    def _emptiness(self, pc: int) -> str:
        """A hint if there is no code at the address of the fault; else empty."""
        code = self._system.instruction(pc)
        is_loaded = self._whereabouts.is_loaded(pc)
        return ": nothing was loaded there, see --load" if code and not any(code) and not is_loaded else ""

    def _nothing(self, address: int | None) -> range | None:
        """The physical addresses around a virtual one where no device answers; None if one does."""
        system = self._system
        return nothing_at(address, system.space, system.facts, system.memory)

    # -- loops --------------------------------------------------------------------------------------------------------

    def _spin(self, now: int) -> Stuck | None:
        system = self._system
        cpu = system.current
        if cpu.is_waiting or any(one.is_on and not one.is_waiting for one in system.cpus if one is not cpu):
            self._states.clear()
            return None
        registers = map(cpu.registers.get, system.arch.registers)
        state = (cpu.number, system.progress.events, *registers)
        if state in self._states:
            return self._judged() if now - self._since >= _SPIN else None
        if len(self._states) == _STATES:
            self._states.clear()
        self._states.add(state)
        self._since, self._unanswered = now, self._reads()
        return None

    def _reads(self) -> int:
        """How many reads no device has answered so far."""
        return self._system.open_bus.unanswered + self._system.ports.unanswered

    def _judged(self) -> Stuck | None:
        """The loop, if there is a sign that it was not meant to be."""
        system = self._system
        place = self._whereabouts.at(system.current, system.engine.pc())
        fault = system.progress.last
        if fault is not None:
            before = self._whereabouts.at(system.current, fault.pc)
            why = f"since a fault: {fault.what} at {before.where}"
            return self._stuck("spins", place, why, self._nothing(fault.address))
        if self._reads() - self._unanswered >= _ASKED:
            return self._asks(place)
        if self._has_printed or system.trap.hits or not self._is_jump_to_itself(place.address):
            return None
        return self._stuck("spins", place, "it has printed nothing", None)

    def _asks(self, place: CpuPlace) -> Stuck:
        system = self._system
        if system.ports.unanswered:
            return self._stuck("spins", place, f"it reads port {system.ports.asked:#x}, where there is no device", None)
        physical = system.space.open_pages.physical(system.open_bus.asked)
        nothing = unclaimed_around(physical, system.facts, system.memory)
        return self._stuck("spins", place, f"it reads {physical:#x}, where there is no device", nothing)

    def _is_jump_to_itself(self, address: int) -> bool:
        code = self._system.instruction(address)
        if not code:
            return False
        ranges = np.array([[0, len(code)]])
        found = dissector(self._system.arch).dissect(np.frombuffer(code, np.uint8), address, ranges)
        return int(found.target[0]) == address

    def _stuck(self, what: str, place: CpuPlace, why: str, nothing: range | None) -> Stuck:
        return Stuck(place, what, why, nothing, self._system.facts.name)
