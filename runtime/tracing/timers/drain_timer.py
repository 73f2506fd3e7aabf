"""Output that is due -> a deadline of the machine's clock."""

from kinst.runtime.tracing.tracer import Output, Tracer


class DrainTimer:
    """Wakes a machine whose CPUs idle in real time, so that output appears at switchrate while nothing happens."""

    def __init__(self, tracer: Tracer, output: Output) -> None:
        self._tracer = tracer
        self._output = output

    def deadline(self) -> int | None:
        """When output is due next, in ns."""
        return self._tracer.due

    def advance(self) -> None:
        """Drain what is due."""
        self._tracer.after_turn(self._output)
