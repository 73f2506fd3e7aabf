"""Output that is due -> a deadline of the machine."""

from kinst.runtime.tracing.tracer import SOONEST, Output, Tracer


class DrainTimer:
    """Wakes a machine that waits in real time, so that output appears even while nothing happens."""

    def __init__(self, tracer: Tracer, output: Output) -> None:
        self._tracer = tracer
        self._output = output
        self._at = tracer.now()

    def deadline(self) -> int | None:
        """When output is due next, in ns."""
        return self._at

    def advance(self) -> None:
        """Drain what is due."""
        self._tracer.after_turn(self._output)
        rate = min(self._tracer.options.number(name) for name in ("switchrate", "aggrate"))
        self._at = self._tracer.now() + max(SOONEST, rate)
