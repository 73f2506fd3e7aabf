"""A debugger's connection to a running machine: where the CPUs stop for it, and how they go on.

The machine is asked between two runs of the engine (`Interlude`), so that a stop takes nothing from a CPU's turn: the
guest cannot tell, and with the instruction clock it ends at the same instruction as without a debugger. The host's time
of a stop is taken back from the clock.

While the guest runs, a thread looks at the connection, and ends the run of the engine when something arrives. Where all
CPUs wait for an interrupt, nothing runs: there the machine asks as it asks devices that act by themselves (`Timed`).
"""

import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kinst.runtime.debugger.address import DebuggerAddress, listening, place_of
from kinst.runtime.debugger.attention import Attention
from kinst.runtime.debugger.backwards import Arrival, Back, Backwards
from kinst.runtime.debugger.channel import Channel, GoneError
from kinst.runtime.debugger.commands import Commands, Debugged, Leaving
from kinst.runtime.debugger.history import History, Rewindable
from kinst.runtime.debugger.memory import DebuggedMemory
from kinst.runtime.debugger.monitor import Monitor
from kinst.runtime.debugger.packets import Signal
from kinst.runtime.debugger.points import Points
from kinst.runtime.debugger.registers import Registers
from kinst.runtime.debugger.resuming import Resumption
from kinst.runtime.debugger.stops import Cause, Stop
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.targets.values import dataclass

_PATIENCE: Final = 0.1  # s between two looks at whether the run is over
_LOST: Final = "the guest has not done again what it did before: it stands where that shows, and there is no way back"


@dataclass(frozen=True, slots=True)
class _Step:
    """A step that has begun: where the CPU was, and the instructions that were executed until then."""

    cpu: int
    pc: int
    executed: int


@dataclass(frozen=True, slots=True)
class Notices:
    """What a debugger's door tells the rest of the run."""

    warn: Callable[[str], None]  # a line for the user, at once
    stopped: Callable[[], None]  # the guest has stopped: what was recorded can be shown


class Debugger:
    """The door of one machine; implements `Interlude` and `Timed`."""

    def __init__(
        self, system: System, loaded: Loaded, address: DebuggerAddress, notices: Notices, guest: Rewindable
    ) -> None:
        """A debugger is awaited at this address when the guest first runs, if the door was opened by then. `guest` has
        the snapshots to go back to."""
        self._system, self._address, self._notices = system, address, notices
        self._listener: socket.socket | None = None
        self._memory = DebuggedMemory(system, loaded)
        self._registers = Registers(system)
        self._points = Points(system, self._memory, self._break, self._watch)
        self._backwards = Backwards(system, History(system, guest), self._registers, self._points)
        self._monitor = Monitor({})
        self._channel: Channel | None = None
        self._commands: Commands | None = None
        self._attention = Attention(self._call)
        self._is_called = False  # by the thread: something has arrived, or a debugger has come
        self._is_awaited = True  # whether the guest waits for a debugger before it goes on
        self._has_gone_on = False  # whether the debugger waits for a stop
        self._is_closed = True  # the door: nobody is awaited, and nothing is watched
        self._cause: Cause | None = None  # of a stop that is due
        self._watched = 0  # the address of the last watchpoint that was met
        self._step: int | None = None  # the CPU that stops after an instruction
        self._from: _Step | None = None
        self._passed: tuple[int, int] | None = None  # CPU and address of a breakpoint that has stopped it already
        system.attach_interlude(self)
        system.attach_observer(self)

    def open(self) -> None:
        """Open the door, once. Raises UsageError: nobody can be awaited at the address."""
        if self._listener is None:
            self._listener, self._is_closed = listening(self._address), False

    @property
    def points(self) -> Points:
        """Where the guest stops."""
        return self._points

    def fresh(self, data: bytes) -> bytes:
        """What of the guest's output was not printed before a debugger went back."""
        return self._backwards.history.fresh(data)

    @property
    def executed(self) -> int:
        """The instructions from the beginning up to where the guest is."""
        return self._backwards.history.executed

    def restored(self) -> bool:
        """The run has ended. Whether a debugger goes back: the guest is restored, and runs again."""
        if not self._backwards.restored():
            return False
        self._step = self._from = self._passed = self._cause = None
        self._points.took_watched()
        return True

    def know(self, monitor: Monitor) -> None:
        """Let the debugger use these commands."""
        self._monitor = monitor

    def be_physical(self, *, is_wanted: bool) -> None:
        """Take the debugger's addresses as physical ones from now on, or not."""
        self._memory.be_physical(is_wanted=is_wanted)

    @property
    def is_there(self) -> bool:
        """Whether a debugger is connected."""
        return self._channel is not None

    def ask(self) -> None:
        """Stop as soon as the instruction that is being executed is done."""
        self._cause = Cause.ASKED
        self._system.clock.interrupt()

    def finish(self, status: int) -> None:
        """The run is over, with an exit status: tell the debugger, and close the door."""
        if self._is_closed or self._listener is None:
            return
        self._is_closed = True
        if self._channel is not None and self._has_gone_on:
            self._tell(f"W{status & 0xFF:02x}".encode())
        self._leave()
        self._attention.close()
        name = self._listener.getsockname()
        self._listener.close()
        if isinstance(name, str):
            Path(name).unlink(missing_ok=True)

    # -- where the guest stops ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """See `Interlude`."""
        if self._is_closed:
            return
        if self._backwards.stops_at_breakpoint():
            self._note_watched()
        if self._was_interrupted():
            self._meet(Cause.STEPPED)  # an interrupt has come: the CPU is where its handler begins
        self._arrive(self._backwards.about_to_run())
        while (self._is_awaited or self._is_called) and not self._system.is_over:
            self._look()
        self._remember()
        self._points.prepare(is_step=self._step is not None)
        if self._system.is_over:
            self._system.engine.stop()  # before its first instruction
        elif self._step == self._system.current.number:
            self._from = self._here()
            if not self._system.engine.one.is_next:
                self._system.engine.one.ask(lambda: None)

    def _was_interrupted(self) -> bool:
        """Whether the CPU that steps is elsewhere than its step has ended, or began."""
        cpu, start = self._system.current.number, self._from
        return self._step == cpu and start is not None and start.cpu == cpu and start.pc != self._system.engine.pc()

    def _remember(self) -> None:
        """The engine is about to run: what of that is kept for a way back."""
        if self._backwards.is_under_way:
            self._step = self._backwards.step
            return
        self._backwards.goes_on()
        if self._channel is not None and not self._system.is_over:
            self._backwards.history.note()

    def ended(self) -> bool:
        """See `Interlude`."""
        if self._is_closed:
            return False
        cause = self._taken_cause()
        is_met = cause is not None and not self._system.is_over
        if cause is not None and is_met:
            self._meet(cause)
        if self._arrive(self._backwards.has_run()) or is_met:
            return True
        if self._is_called and not self._system.is_over:
            self._look()
            return True
        return False

    def _taken_cause(self) -> Cause | None:
        watched = self._points.took_watched()
        cause, self._cause = self._cause, None
        if watched is not None:
            self._watched = watched[1]
            return watched[0]
        return cause or (Cause.STEPPED if self._has_stepped() else None)

    def _has_stepped(self) -> bool:
        start = self._from
        if start is None or self._step != self._system.current.number:
            return False
        return self._executed() != start.executed or self._system.engine.pc() != start.pc

    def _here(self) -> _Step:
        return _Step(self._system.current.number, self._system.engine.pc(), self._executed())

    def _executed(self) -> int:
        counter = self._system.engine.counter
        assert counter is not None, "instructions of a machine that is debugged are counted"
        return counter.executed

    def deadline(self) -> int | None:
        """See `Timed`."""
        if self._is_closed:
            return None
        return 0 if self._is_called else self._backwards.deadline()

    def advance(self) -> None:
        """See `Timed`: no CPU runs, or one is about to."""
        self._backwards.advance()
        self._arrive(self._backwards.waits())
        if self._is_called and not self._system.is_over:
            self._look()

    def _meet(self, cause: Cause) -> None:
        """A step, a breakpoint or a watchpoint: stop, unless the guest is on a way back."""
        if not self._backwards.is_under_way:
            self._serve(cause)
            return
        self._backwards.stopped(cause, self._watched)
        self._from, self._passed = self._here(), (self._system.current.number, self._system.engine.pc())

    def _note_watched(self) -> None:
        """What the machine itself has stored, as it delivered an interrupt."""
        watched = self._points.took_watched()
        if watched is not None:
            self._backwards.stopped(*watched)

    def _arrive(self, arrival: Arrival | None) -> bool:
        """Stop where a way back ends, if it does here."""
        if arrival is None:
            return False
        if self._backwards.has_failed:
            self._notices.warn(f"gdb: {_LOST}")
            self._tell(b"O" + f"{_LOST}\n".encode().hex().encode())
        self._watched = arrival.address
        self._serve(arrival.cause)
        return True

    def _break(self, cause: Cause, address: int) -> bool:
        """A CPU has reached a breakpoint: whether it stops there. It has already, if it goes on from there."""
        if self._channel is None:
            return False
        if self._backwards.is_under_way and (cause is Cause.ASKED or not self._backwards.stops_at_breakpoint()):
            return False
        passed, self._passed = self._passed, None
        if passed == (self._system.current.number, address):
            return False
        self._cause = cause
        return True

    def _watch(self) -> None:
        """An access is being done that a watchpoint is for."""
        if self._channel is not None:
            self._system.clock.interrupt()

    def _call(self) -> None:
        """In the thread: something has arrived."""
        self._is_called = True
        self._system.engine.stop()

    # -- while it is stopped ------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Something has arrived, or the guest waits for a debugger that has not come yet."""
        self._is_called = False
        if self._channel is None:
            start = time.monotonic_ns()
            has_come = self._accept()
            self._system.clock.stand_still(time.monotonic_ns() - start)
            if has_come:
                self._serve(Cause.ATTACHED)
            else:
                self._go_on()
            return
        try:
            found = self._channel.waiting()
        except GoneError:
            self._vanished()
            return
        if found is Signal.INTERRUPT:
            self._serve(Cause.INTERRUPTED)
        elif isinstance(found, bytes) and found in (b"k", b"D"):  # others are against the protocol: the guest runs
            self._obey(Leaving.KILLED if found == b"k" else Leaving.DETACHED)
        else:
            self._go_on()

    def _accept(self) -> bool:
        """Take the debugger that waits, or if the guest waits for one, the next that comes. Whether there is one."""
        assert self._listener is not None
        if self._is_awaited:
            self._notices.warn(f"gdb: waits for a debugger: target remote {place_of(self._listener)}")
        while not self._system.is_over:
            if select.select([self._listener], [], [], _PATIENCE if self._is_awaited else 0)[0]:
                self._channel = Channel(self._listener.accept()[0])
                known = self._system, self._registers, self._memory, self._points, self._monitor, self._backwards
                self._commands = Commands(Debugged(*known), self._channel.stop_acknowledging)
                self._is_awaited = self._has_gone_on = False
                return True
            if not self._is_awaited:
                break
        return False

    def _serve(self, cause: Cause) -> None:
        """The guest stands still, up to what the debugger lets it do next."""
        start, cpu = time.monotonic_ns(), self._system.current.number
        self._attention.rest()
        self._backwards.end()
        self._is_called, self._step, self._from = False, None, None
        self._notices.stopped()
        assert self._commands is not None
        said = self._commands.stopped(Stop(cause, cpu, self._watched))
        if self._has_gone_on:
            self._tell(said)
        self._has_gone_on = False
        outcome = self._conversation()
        if self._system.current.number != cpu:
            self._system.show(cpu)
        while isinstance(outcome, Back) and not self._backwards.begin(outcome):
            self._tell(self._commands.stopped(Stop(Cause.BEGINNING, cpu)))
            outcome = self._conversation()
        self._obey(outcome)
        self._from, self._passed = self._here(), (cpu, self._system.engine.pc())
        self._system.clock.stand_still(time.monotonic_ns() - start)

    def _conversation(self) -> Resumption | Back | Leaving | None:
        """Answer packets, up to one by which the guest goes on; None: the run is over, or the debugger has gone."""
        while self._channel is not None and self._commands is not None:
            try:
                found = self._channel.next(lambda: self._system.is_over)
                if found is None:
                    return None
                outcome = self._commands.handle(found) if isinstance(found, bytes) else b""
                if isinstance(outcome, bytes):
                    if isinstance(found, bytes):
                        self._channel.send(outcome)
                    continue
                if outcome is Leaving.DETACHED:
                    self._channel.send(b"OK")
                return outcome
            except GoneError:
                self._vanished()
        return None

    def _obey(self, outcome: Resumption | Back | Leaving | None) -> None:
        match outcome:
            case Back():
                self._has_gone_on = True
                self._go_on()
            case Resumption(step):
                self._step, self._has_gone_on = step, True
                self._go_on()
            case Leaving.DETACHED:
                self._leave()
                self._go_on()
            case Leaving.KILLED:
                self._leave()
                self._system.finish(End.INTERRUPTED)
            case None:
                pass

    def _go_on(self) -> None:
        """The guest goes on: look at what comes meanwhile, or has come with the packet by which it goes on."""
        if self._channel is not None and self._channel.has_events:
            self._is_called = True
        elif not self._is_closed and self._listener is not None:
            self._attention.watch((self._channel or self._listener).fileno())

    def _tell(self, data: bytes) -> None:
        try:
            if self._channel is not None:
                self._channel.send(data)
        except GoneError:
            self._vanished()

    def _vanished(self) -> None:
        self._notices.warn("gdb: the debugger has closed the connection: the guest goes on without it")
        self._leave()
        self._go_on()

    def _leave(self) -> None:
        """No debugger is connected from now on."""
        self._attention.rest()
        if self._channel is not None:
            self._channel.close()
        self._channel = self._commands = self._cause = self._step = self._from = self._passed = None
        self._has_gone_on = False
        self._backwards.end()
        self._backwards.history.forget()
        self._points.clear()
