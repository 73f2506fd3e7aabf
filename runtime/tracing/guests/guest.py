"""An image in a machine, with providers of its probes. It has not run yet, or it has stopped and can continue."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from kinst.runtime.engine.bare_qiling import BareQiling
from kinst.runtime.input.typist import Keyboard, Typist
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.systems.registry import panic_of
from kinst.runtime.tracing.guests.panic_watch import PanicWatch
from kinst.runtime.tracing.guests.snapshotting import GuestSnapshots
from kinst.runtime.tracing.guests.stuck_watch import StuckWatch
from kinst.runtime.tracing.guests.unmodelled_watch import UnmodelledWatch
from kinst.runtime.tracing.host.ending import Ending, Outcome
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.host.whereabouts import Whereabouts
from kinst.runtime.tracing.images.patched_code import PatchedCode
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.programs.inline_clauses import InlineClauses
from kinst.runtime.tracing.programs.until import UntilWatch
from kinst.targets.errors import MachineError

if TYPE_CHECKING:
    from kinst.runtime.debugger.debugger import Debugger
    from kinst.runtime.machine.calling.called import Called
    from kinst.runtime.machine.calling.function_call import FunctionCall
    from kinst.runtime.machine.calling.template import Call
    from kinst.runtime.tracing.guests.covering import Covering
    from kinst.runtime.tracing.guests.each_call import EachCall, Told
    from kinst.runtime.tracing.guests.event_log import EventLog
    from kinst.runtime.tracing.guests.learning import Learner
    from kinst.runtime.tracing.images.beside_code import BesideImages
    from kinst.runtime.tracing.images.guest_modules import GuestModules
    from kinst.runtime.tracing.standalone.guest import StandaloneGuest


class Guest:
    """A guest that is traced; implements `kinst.runtime.tracing.running.Traced`."""

    has_guest = True

    def __init__(
        self,
        prepared: Prepared,
        system: System,
        loaded: Loaded,
        code: PatchedCode | None,
        surroundings: Surroundings,
        inlines: InlineClauses | None,
        standalone: "StandaloneGuest | None" = None,
        *,
        snapshots: GuestSnapshots,
        beside: "BesideImages | None" = None,
        late: "GuestModules | None" = None,
        log: "EventLog | None" = None,
        debugger: "Debugger | None" = None,
        covering: "Covering | None" = None,
        warn: Callable[[str], None],
        link_address: Callable[[int], int] = int,
    ) -> None:
        """Made by `build`. `code` is None for an image without probes, and for a standalone one. `warn` is called at
        once with warnings that cannot wait for the output. `link_address` gives that of an address of the image."""
        self.link_address = link_address
        self._log, self.beside, self._debugger = log, beside, debugger
        self._late = late
        self.snapshots, self.covering = snapshots, covering
        self.prepared = prepared
        self.system = system
        self.loaded = loaded
        self.code = code
        self.surroundings = surroundings
        self.inlines = inlines
        self.result: int | None = None  # the result of a call that has returned
        request = prepared.request
        signs_of = lambda image: panic_of(image, request.system) if request.ends_on_panic else ()  # noqa: E731
        self._panic = PanicWatch(system, system.memory.read, prepared.original, loaded.physical, signs_of)
        self._watch = UntilWatch(system)
        system.attach_observer(self._watch)
        self.typist = Typist(system)
        system.kept["console"] = self.typist
        self.whereabouts = Whereabouts(system, loaded, surroundings.symbols)
        self._stuck = StuckWatch(system, self.whereabouts, warn)
        self._unmodelled = UnmodelledWatch(system, self.whereabouts, warn)
        self._learner = _learner(prepared, system, self.whereabouts, warn)
        self._standalone = standalone
        self._call: FunctionCall | None = None
        self._each: EachCall | None = None
        self._is_started = False

    @property
    def ql(self) -> BareQiling:
        """The machine as a Qiling object: `mem`, `arch.regs`, hooks, `stop`, `save`, `restore`. See `Trace.ql`."""
        return self.system.engine.ql

    @property
    def exit_code(self) -> int:
        """The exit code that the guest gave when it switched itself off."""
        return self.system.exit_code

    @property
    def answer(self) -> str:
        """The result of the call, as a line; empty if there was no call."""
        return "" if self.result is None else f"{self.prepared.request.call} = {self.result:#x}"

    @property
    def keyboard(self) -> Keyboard:
        """Where input can be typed."""
        return Keyboard(self.typist, self.system.serial_line)

    def go(self, limits: Limits, console: Callable[[bytes], None], after_turn: Callable[[], None]) -> End:
        """Start the board or make the call, or continue. See `Traced`."""
        self._watch.search_for(limits.until)
        if self._each is not None:
            return self._each.go(limits, MachineHooks(self._sink(console), self._between_turns(after_turn)))
        if not self._is_started:
            self._is_started = True
            self._start()
        event = None if self._call is None else self._call.handle
        hooks = MachineHooks(self._sink(console), self._between_turns(after_turn), event)
        with self.snapshots.during_run():
            end = self._run(limits, hooks)
        if self._call is not None and end is End.RETURNED:
            self.result = self._call.result
        if self._standalone is not None:
            self._standalone.collect(end)
        return end

    def _run(self, limits: Limits, hooks: MachineHooks) -> End:
        """Run within the limits: again from each snapshot that a debugger goes back to."""
        clock, start, wall_start = self.system.clock, self.system.clock.now(), time.monotonic_ns()
        timeout, wall_timeout = limits.timeout, limits.wall_timeout
        while True:
            end = self.system.run(timeout, wall_timeout, hooks)
            if self._debugger is None or end is not End.PAUSED or not self._debugger.restored():
                return end
            self.went_back()
            timeout = None if limits.timeout is None else start + limits.timeout - clock.now()
            if limits.wall_timeout is not None:
                wall_timeout = max(0, wall_start + limits.wall_timeout - time.monotonic_ns())

    def went_back(self) -> None:
        """The guest was restored: what its watches have seen is yet to come, or never will."""
        self._panic.begin_anew()
        self._stuck.begin_anew()
        self._unmodelled.begin_anew()

    def _sink(self, console: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """All that receives the guest's console. `console` is first: a match of --until must be in the output."""
        watch, panic, typist = self._watch, self._panic, self.typist
        stuck, unmodelled, debugger = self._stuck, self._unmodelled, self._debugger

        def sink(data: bytes) -> None:
            console(data)
            panic.on_console(data)
            stuck.on_console()
            unmodelled.on_console()
            watch.on_console(data)
            typist.on_console(data)

        def sink_once(data: bytes) -> None:
            """Without what a guest that was taken back prints again, which the typist alone has forgotten."""
            fresh = data if debugger is None else debugger.fresh(data)
            if len(fresh) < len(data):
                typist.on_console(data[: len(data) - len(fresh)])
            if fresh:
                sink(fresh)

        return sink if debugger is None else sink_once

    def _between_turns(self, after_turn: Callable[[], None]) -> Callable[[], None]:
        """All that runs between two turns of a CPU."""
        callbacks = [after_turn, self._panic.check, self.snapshots.after_turn]
        if self.prepared.call is None and self._each is None:
            callbacks += self._stuck.check, self._unmodelled.check
        if self._learner is not None:
            callbacks.append(self._learner.check)
        if self._standalone is not None:
            callbacks.append(self._standalone.after_turn)

        def between() -> None:
            for one in callbacks:
                one()

        return between

    def call(self, call: "Call", address: int, limits: Limits) -> End:
        """Call a function at a link address, in a machine in its initial state: it is new, or was reset. Raises
        MachineError: as `go`."""
        from kinst.runtime.machine.calling.function_call import FunctionCall

        self._is_started, self.result = True, None
        self._panic.begin_anew()
        self._call = FunctionCall(self.system, call, address)
        return self.go(limits, lambda _data: None, lambda: None)

    def call_each(self, calls: "Iterable[Call]", told: "Told", *, pauses: bool = False) -> None:
        """Let a run make these calls, each from the present state, in place of what it does else. See `EachCall`."""
        from kinst.runtime.tracing.guests.each_call import EachCall

        self._each = EachCall(self, calls, told, pauses=pauses)

    def called(self, _call: "Call", called: "Called") -> None:
        """Let what became of a call be the guest's answer. Raises MachineError: it has not returned."""
        if called.result is None:
            raise MachineError(f"{self.prepared.request.call}: {called.error or f'did not return: {called.reason}'}")
        self.result = called.result

    def _start(self) -> None:
        call = self.prepared.call
        if call is None:
            self.snapshots.begin()
        else:
            from kinst.runtime.machine.calling.function_call import FunctionCall, set_c_registers
            from kinst.runtime.machine.calling.loading import find_function

            address = find_function(self.loaded.image, call.function, self.discovered)
            set_c_registers(self.system, self.loaded)
            self._call = FunctionCall(self.system, call, address)

    def discovered(self) -> dict[str, int]:
        """The names and addresses of all functions, including those without a symbol."""
        functions = self.prepared.opened().program.functions
        return dict(zip(functions.names, functions.address.tolist(), strict=True))

    def ending(self, outcome: Outcome) -> Ending:
        """What is known about the end of the run."""
        if self._log is not None:
            self._log.finish()
        if self._debugger is not None:
            self._debugger.finish(self.exit_code if isinstance(outcome, End) else getattr(outcome, "exit_code", 1))
        ending = self.whereabouts.ending(outcome, is_verbose=self.prepared.request.is_verbose)
        late = (one for one in (self.beside, self._late) if one is not None and self.system.has_run)
        missed = tuple(line for one in late for line in one.missed())
        ending = replace(ending, stuck=self._stuck.found, assumed=self._unmodelled.lines(), missed=missed)
        return ending if self.code is None else replace(ending, passed_over=self.code.passed_over())


def _learner(
    prepared: Prepared, system: System, whereabouts: Whereabouts, warn: Callable[[str], None]
) -> "Learner | None":
    """What learns for --learn."""
    request = prepared.request.learn
    if request is None or prepared.call is not None:
        return None
    from kinst.runtime.tracing.guests.learning import Learner

    return Learner(request, system, whereabouts, warn)
