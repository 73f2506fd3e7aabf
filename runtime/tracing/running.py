"""Enabled probes, a machine and an output -> a traced run: BEGIN, the machine as far as it is let go, END."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.tracing.drain_timer import DrainTimer
from kinst.runtime.tracing.ending import Ending, Outcome
from kinst.runtime.tracing.limits import Limits
from kinst.runtime.tracing.surroundings import Surroundings
from kinst.runtime.tracing.tracer import Output, Tracer
from kinst.targets.errors import MachineError

PAUSES: Final = frozenset({End.UNTIL, End.TIMEOUT, End.WALL_TIMEOUT, End.INTERRUPTED, End.STOPPED})  # it can go on


class Traced(Protocol):
    """What is traced: `kinst.runtime.tracing.guest.Guest`, or `kinst.runtime.tracing.idle.Idle` without an image."""

    @property
    def surroundings(self) -> Surroundings:
        """What clauses can see of it."""
        ...

    @property
    def has_guest(self) -> bool:
        """Whether there is a machine that may wait for long; without one the run is over when no timer is left."""
        ...

    @property
    def exit_code(self) -> int:
        """What the guest said when it switched itself off."""
        ...

    @property
    def answer(self) -> str:
        """What a function call of the guest returned, as a line; empty if there was none."""
        ...

    def on_turn(self, callback: Callable[[], None]) -> None:
        """Have a callable called now and then, between two instructions."""
        ...

    def go(self, limits: Limits, console: Callable[[bytes], None]) -> End:
        """Start, or go on, until something ends it. Raises MachineError: it stopped for good."""
        ...

    def ending(self, outcome: Outcome) -> Ending:
        """What there is to tell when it is over."""
        ...


class Running:
    """One run. `ending` is None until it is over."""

    def __init__(self, traced: Traced, tracer: Tracer, output: Output, clock: ClockKind) -> None:
        """Write the breakpoints of what `tracer` has enabled; nothing runs yet."""
        self._traced, self._tracer, self._output = traced, tracer, output
        self._is_begun = False
        self.ending: Ending | None = None
        traced.surroundings.arm()
        traced.on_turn(lambda: tracer.after_turn(output))
        if clock is ClockKind.HOST and traced.has_guest:
            traced.surroundings.host.attach(DrainTimer(tracer, output))

    def go(self, limits: Limits) -> End:
        """Run as far as `limits` say: the first time BEGIN fires before. What no limit ended is over: END has fired.

        Raises:
            MachineError: the guest stopped for good; END has fired all the same.
        """
        try:
            if self._traced.has_guest and not self._is_begun:
                gc.collect()
            with _without_old_garbage():
                end = self._go(limits)
        except BaseException as error:
            self._finish(error)
            if isinstance(error, MachineError) and self.ending is not None:
                raise MachineError("\n".join([str(error), *self.ending.lines(is_verbose=False)])) from error
            raise
        if end not in PAUSES:
            self._finish(end)
        return end

    def _go(self, limits: Limits) -> End:
        if not self._is_begun:
            self._is_begun = True
            self._tracer.begin(self._output)
        return self._traced.go(limits, self._tracer.console) if self._tracer.state.is_tracing else End.EXIT

    def finish(self, end: End) -> Ending:
        """END fires, if it has not yet, and all that is left is put out. `end` is what the machine stopped for."""
        if self.ending is None:
            self._finish(end)
        assert self.ending is not None
        return self.ending

    def _finish(self, outcome: Outcome) -> None:
        self.ending = self._traced.ending(outcome)
        self._tracer.finish(self._output, self.ending)


@contextmanager
def _without_old_garbage() -> Iterator[None]:
    """What was made so far stays as long as the run: Python's full collections, which many records cause, need not look
    through it. So a printf() clause costs half a microsecond instead of four."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
