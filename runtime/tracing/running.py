"""Enabled probes, a machine and an output -> a traced run: BEGIN, the machine within its limits, END."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Final, Protocol

from kinst.runtime.input.expression import Expression
from kinst.runtime.input.typist import Keyboard
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.tracing.host.ending import Ending, Outcome
from kinst.runtime.tracing.host.exit_status import exit_status
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.timers.drain_timer import DrainTimer
from kinst.runtime.tracing.tracer import Output, Tracer
from kinst.targets.errors import MachineError
from kinst.targets.visible import visible

_AS_ASKED: Final = frozenset({End.UNTIL, End.EXIT, End.INTERRUPTED, End.PAUSED, End.STOPPED})  # no "unmet" --until
# It can continue.
PAUSES: Final = frozenset({End.UNTIL, End.TIMEOUT, End.WALL_TIMEOUT, End.INTERRUPTED, End.PAUSED, End.STOPPED})


class Traced(Protocol):
    """What is traced: `kinst.runtime.tracing.guests.guest.Guest`, or a machine without an image."""

    @property
    def surroundings(self) -> Surroundings:
        """What clauses can see."""
        ...

    @property
    def has_guest(self) -> bool:
        """Whether there is a guest. Without one the run is over when no timer is left."""
        ...

    @property
    def exit_code(self) -> int:
        """The exit code that the guest gave when it switched itself off."""
        ...

    @property
    def answer(self) -> str:
        """The result of a function call, as a line; empty if there was none."""
        ...

    @property
    def keyboard(self) -> Keyboard | None:
        """Where input can be typed; None: nowhere."""
        ...

    def go(self, limits: Limits, console: Callable[[bytes], None], after_turn: Callable[[], None]) -> End:
        """Start or continue, until something ends it.

        Args:
            limits: of the run.
            console: called with what the guest prints.
            after_turn: called between two turns of a CPU, when no instruction is being executed.

        Raises:
            MachineError: the guest stopped for good.
        """
        ...

    def ending(self, outcome: Outcome) -> Ending:
        """What is known about the end of the run."""
        ...


class Running:
    """One run, in one or more stretches. `ending` is None until it is over."""

    def __init__(
        self, traced: Traced, tracer: Tracer, output: Output, clock: ClockKind, *, is_live: bool = False
    ) -> None:
        """Write the breakpoints of what `tracer` has enabled. Nothing runs yet. `is_live`: the guest's console is on a
        terminal, and what it prints must appear at once."""
        self._traced, self._tracer, self._output = traced, tracer, output
        self._is_begun = False
        self._until: Expression | None = None  # of the last stretch
        self.ending: Ending | None = None
        traced.surroundings.arm()
        traced.surroundings.on_stop(lambda: tracer.read(output))
        traced.surroundings.repeats(tracer.listening)
        self._console = tracer.live_console if is_live else tracer.console
        # Without a guest, a deadline for drains would keep the run alive when no timer is left (End.NOTHING_LEFT). With
        # virtual time nothing waits: what is due is drained between turns.
        if traced.has_guest and (clock is ClockKind.HOST or is_live):
            traced.surroundings.host.attach(DrainTimer(tracer, output))

    def go(self, limits: Limits) -> End:
        """Run within `limits`. BEGIN fires before the first stretch. If no limit ended it, the run is over and END has
        fired.

        Raises:
            MachineError: the guest stopped for good. END has fired: its clauses print what was collected until then.
        """
        try:
            if self._traced.has_guest and not self._is_begun:
                gc.collect()  # what is garbage now would be frozen below, and never freed
            with _without_old_garbage():
                end = self._go(limits)
        except BaseException as error:
            self._finish(error)
            if isinstance(error, MachineError) and self.ending is not None:  # with where the CPUs are
                raise type(error)("\n".join([str(error), *self.ending.lines(is_verbose=False)])) from error
            raise
        if end not in PAUSES:
            self._finish(end)
        return end

    def _go(self, limits: Limits) -> End:
        self._until = limits.until
        if not self._is_begun:
            self._is_begun = True
            self._tracer.begin(self._output)
        if self._tracer.listening.is_over:
            return End.EXIT
        return self._traced.go(limits, self._console, lambda: self._tracer.after_turn(self._output))

    def finish(self, end: End) -> Ending:
        """Fire END, if it has not fired, and write all that is left. `end` is why the machine stopped."""
        if self.ending is None:
            self._finish(end)
        assert self.ending is not None
        return self.ending

    def _finish(self, outcome: Outcome) -> None:
        ending = self._traced.ending(outcome)
        if isinstance(outcome, End):
            said, until = self._tracer.exit_status, None if outcome in _AS_ASKED else self._until
            status = exit_status(outcome, said=said, guest=self._traced.exit_code, is_unmet=until is not None)
            ending = replace(ending, status=status, unmet="" if until is None else _shown(until))
        self.ending = ending
        self._tracer.finish(self._output, ending)


def _shown(until: Expression) -> str:
    return visible(until.text.decode(errors="surrogateescape"))


@contextmanager
def _without_old_garbage() -> Iterator[None]:
    """Exempts what exists now, all of which outlives the run, from Python's full garbage collections. Many records
    trigger those; without the exemption a printf() clause takes four microseconds in place of half of one.
    gc.unfreeze() is global: where objects were frozen before the first run, as `kinst-batch` does for its workers,
    they stay."""
    if _is_exempted_by_others(os.getpid()):
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@cache
def _is_exempted_by_others(_process: int) -> bool:
    """Whether objects were frozen before our first run in this process. Cached: get_freeze_count() walks the list, 50
    ms for half a million objects."""
    return gc.get_freeze_count() > 0
