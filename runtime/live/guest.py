"""A guest in a QEMU of ours -> its console, what is typed at it, its limits and its end."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from kinst.runtime.input.typist import Typist
from kinst.runtime.live.hits import Hits
from kinst.runtime.live.panic import ConsolePanic
from kinst.runtime.live.qemu import Qemu
from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.silence import Silence
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Timed
from kinst.runtime.machine.idle_machine import IdleMachine
from kinst.runtime.machine.serial_line import SerialLine
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.readout.packets import StubError
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.programs.until import UntilWatch
from kinst.runtime.tracing.running import PAUSES
from kinst.runtime.tracing.standalone.findings import Part
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

_EVERY: Final = 10_000_000  # ns between polls of the console, the ring and QEMU's end
_AT_REST: Final = 50_000_000  # where nobody types or waits for a word of the console, and no ring can be full
_TYPED: Final = 256  # bytes at a time
_QUIET: Final = 500_000_000  # ns without output after which a guest is assumed to wait for input


class Stops(Protocol):
    """Who stops the guest now and then, by QEMU's gdb stub, and lets it go on."""

    @property
    def is_done(self) -> bool:
        """Whether the guest is not stopped any more."""

    def poll(self) -> None:
        """Called often. Raises MachineError: probes cannot be where the guest goes, or QEMU is gone."""

    def wait(self, seconds: float) -> bool:
        """Wait until the guest may have stopped; returns whether that is so."""

    def close(self) -> None:
        """Leave a guest that is at its end."""

    def check(self) -> None:
        """Called at the end. Raises MachineError: it has missed something."""


@dataclass(frozen=True, slots=True)
class Started:
    """A QEMU, its memory, and the hits in that; None: the image has no probes."""

    qemu: Qemu
    ram: SharedRam
    hits: Hits | None
    stops: Stops | None = None


class LiveGuest:
    """The guest of a QEMU; implements the guest's part of `kinst.runtime.tracing.running.Traced`, and `Timed`."""

    def __init__(
        self,
        machine: IdleMachine,
        start: Callable[[SiteTable | None], Started],
        panic: ConsolePanic,
        silence: Silence | None,
        on_stop: Callable[[], str] | None,
    ) -> None:
        """`machine` has the host's time. `start` makes the image and starts QEMU, paused. `silence` is
        None if the console is not ours. `on_stop` is called when
        stop() has paused the guest, and returns how it can go on; None: that ends the stretch of the run."""
        self.clock, self._start, self._on_stop = machine, start, on_stop
        self._panic, self._silence, self._is_to_go_on = panic, silence, False
        self._was_paused, self._is_awaited = True, False
        self.serial_line = SerialLine()
        self.typist = Typist(self, _QUIET)
        self._until = UntilWatch(self)
        self._console: Callable[[bytes], None] = lambda _data: None
        self._unsent = b""
        self._started: Started | None = None
        self._next = self._exit_code = 0
        machine.attach_observer(self)
        machine.attach_observer(self._until)
        machine.sleep_by(self._sleep)

    def attach_timed(self, timed: Timed) -> None:
        """See `Typed`."""
        self.clock.attach_observer(timed)

    def finish(self, end: End) -> None:
        """End the run."""
        self.clock.finish(end)

    # -- the run ------------------------------------------------------------------------------------------------------

    def begin(self, sites: SiteTable | None) -> None:
        """Make the image, and start QEMU, which take no time of the machine: errors come before anything is printed.
        Raises KinstError."""
        if self._started is None:
            before = self.clock.now()
            self._started = self._start(sites)
            self.clock.stand_still(self.clock.now() - before)

    @property
    def _let(self) -> Started:
        assert self._started is not None, "begin() comes first"
        return self._started

    @property
    def _qemu(self) -> Qemu:
        return self._let.qemu

    @property
    def _hits(self) -> Hits | None:
        return None if self._started is None else self._started.hits

    @property
    def is_paused(self) -> bool:
        """Whether stop() has paused it, or somebody else."""
        return self._started is not None and self._qemu.is_paused

    def pause(self) -> None:
        """Pause the guest, until `go_on`. Raises MachineError."""
        self._qemu.pause()
        self._follow(is_paused=self._qemu.is_paused)

    def stop(self) -> str:
        """Pause the guest, which has gone on since the hit. See `Surroundings`. Raises MachineError."""
        if self.is_paused:
            return ""
        self.pause()
        if self._on_stop is not None:
            return self._on_stop()
        self.finish(End.PAUSED)
        return "run() lets it go on"

    def go_on(self) -> None:
        """Let it continue after `stop`. May be called by the handler of a signal."""
        self._is_to_go_on = True

    def go(self, limits: Limits, console: Callable[[bytes], None], after_turn: Callable[[], None]) -> End:
        """See `Traced`. Raises MachineError: QEMU has ended by itself, or the image is not in its memory."""
        self._console = console
        self._until.search_for(limits.until)
        self._is_awaited = limits.until is not None
        self._resume()
        end = self.clock.run(after_turn, limits.timeout, limits.wall_timeout)
        if end in PAUSES:
            self._qemu.pause()
            self._follow(is_paused=self._qemu.is_paused)
        self._hear()
        if self._hits is not None:
            # Also at a pause of kinst-run, which continues after none: an error in `close` would not be reported.
            self._hits.find(is_last=end not in PAUSES or self._on_stop is not None)
        if self._let.stops is not None:
            self._let.stops.check()
        return end

    def deadline(self) -> int:
        """See `Timed`."""
        return self._next

    def advance(self) -> None:
        """See `Timed`. Raises MachineError."""
        end = self._qemu.end()  # first: after it, nothing that was printed or recorded is missed below
        self._follow(is_paused=self._qemu.is_paused)
        self._hear()
        self._type()
        if self._hits is not None:
            self._hits.poll()
        if self._is_to_go_on:  # all that was recorded before the pause is read now
            self._is_to_go_on = False
            self._resume()
        self._panic.check()
        if self._silence is not None and not self.is_paused:
            self._silence.check(self.clock.now())
        if end is not None:
            self.finish(end)
        if end is None:
            self._look_after()
        self._next = self.clock.now() + self._interval

    @property
    def _stops(self) -> Stops | None:
        """Who may stop the guest."""
        stops = None if self._started is None else self._started.stops
        return None if stops is None or stops.is_done else stops

    def _look_after(self) -> None:
        """Do what is to be done if the guest has stopped."""
        if (stops := self._stops) is not None:
            try:
                stops.poll()
            except StubError:
                if not self._qemu.has_ended():
                    raise
                stops.close()

    @property
    def _interval(self) -> int:
        """Time in ns until the next look."""
        often = _EVERY if self._hits is None else self._hits.interval
        return _AT_REST if self._is_at_rest else often

    def _sleep(self, seconds: float) -> None:
        """Wait. A guest at a breakpoint is not kept waiting, and costs no looks before it is there."""
        if (stops := self._stops) is None:
            time.sleep(seconds)
        elif stops.wait(seconds):
            self._next = self.clock.now()

    @property
    def _is_at_rest(self) -> bool:
        """Whether nothing has to be known at once: each poll takes a third of a millisecond of a CPU."""
        is_typed = self.serial_line.has_sources or not self.typist.is_idle or not self.serial_line.is_empty
        has_ring = self._hits is not None and self._hits.has_ring
        return not (self._is_awaited or is_typed or has_ring or self._unsent)

    def _resume(self) -> None:
        if self._qemu.is_paused:
            self._follow(is_paused=False)
            self._qemu.resume()

    def _follow(self, *, is_paused: bool) -> None:
        """Let the time of records follow pauses, ours and those of a debugger."""
        if self._hits is not None and is_paused is not self._was_paused:
            self._was_paused = is_paused
            if is_paused:
                self._hits.pause()
            else:
                self._hits.go_on()

    def fold(self) -> None:
        """Give counts to aggregations, which are about to be read."""
        if self._hits is not None and self._hits.has_counters:
            self._hits.find(Part.COUNTS)

    def close(self) -> None:
        """End QEMU. What is left in its memory is read after that, however the run has ended."""
        started, self._started = self._started, None
        if started is None:
            return
        self._exit_code = started.qemu.close()
        with suppress(MachineError):  # reported by `go` or `advance`
            if started.hits is not None:
                started.hits.find(is_last=True)
        started.ram.close()

    @property
    def exit_code(self) -> int:
        """The guest's exit status when it powered off."""
        return self._exit_code

    def _hear(self) -> None:
        if data := self._qemu.heard():
            self._console(data)
            if self._silence is not None:
                self._silence.on_console()
            self._panic.on_console(data, self, self._let.ram)
            self._until.on_console(data)
            self.typist.on_console(data)

    def _type(self) -> None:
        self.serial_line.look()
        self._unsent = self._unsent or self.serial_line.poll(_TYPED)
        if self._unsent:
            self._unsent = self._unsent[self._qemu.type(self._unsent) :]
