"""A picture over time -> looks at the aggregations, often at first and less often in a run that lasts."""

from collections.abc import Callable, Sequence

from kinst.runtime.clauses.aggregations import Contents
from kinst.runtime.clauses.time_bins import MOST
from kinst.runtime.tracing.host.schedule import SOONEST
from kinst.runtime.tracing.tracer import Tracer


def look_often(tracer: Tracer, look: Callable[[int, Sequence[Contents]], None]) -> None:
    """Call `look` with the time (ns) and what was added since, whenever the aggregations are looked at: several hundred
    times in a run of any length, or as -x aggrate says. With aggsize, what finds room depends on that: it stays."""
    options, start = tracer.options, tracer.now()
    is_free = not options.is_set("aggrate") and not options.is_set("aggsize")
    if is_free:
        options.set("aggrate", f"{SOONEST}ns")

    def sample(now: int, added: Sequence[Contents]) -> None:
        look(now, added)
        if is_free and now - start > MOST * options.number("aggrate"):
            options.set("aggrate", f"{2 * options.number('aggrate')}ns")

    tracer.on_snapshot(sample)
