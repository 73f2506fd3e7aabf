"""A picture over time -> frequent snapshots of the aggregations, at an interval that grows with the run."""

from collections.abc import Callable, Sequence

from kinst.runtime.clauses.aggregations import Contents
from kinst.runtime.clauses.time_bins import MOST
from kinst.runtime.tracing.host.schedule import SOONEST
from kinst.runtime.tracing.tracer import Tracer


def sample_often(tracer: Tracer, call: Callable[[int, Sequence[Contents]], None]) -> None:
    """Call `call` with the time (ns) and what was added since, at each snapshot of the aggregations: several hundred
    times in a run of any length, or as -x aggrate says."""
    options, start = tracer.options, tracer.now()
    # A snapshot empties the buffers of aggregations. With aggsize their size is limited, and which keys are dropped
    # depends on when they are emptied: a picture beside the output must not change the output.
    is_free = not options.is_set("aggrate") and not options.is_set("aggsize")
    if is_free:
        options.set("aggrate", f"{SOONEST}ns")

    def sample(now: int, added: Sequence[Contents]) -> None:
        call(now, added)
        if is_free and now - start > MOST * options.number("aggrate"):
            options.set("aggrate", f"{2 * options.number('aggrate')}ns")

    tracer.on_snapshot(sample)
