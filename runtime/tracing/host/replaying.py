"""A guest's machine, and what is known about its threads -> what clauses need that are replayed."""

from kinst.runtime.clauses.environment import GuestProfile
from kinst.runtime.hits.combining import Replays
from kinst.runtime.hits.counted import CountedSites
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.host.contract import TIME_BASE


def replays_of(system: System, profile: GuestProfile) -> Replays | None:
    """None if hits are dispatched: the host cannot record, or it was asked for."""
    counted = system.trap.counted
    if not isinstance(counted, CountedSites):
        return None
    recorded = counted.recorded
    ranges = profile.ranges(counted.forget_threads)
    if ranges is not None:
        recorded.know(ranges, system.host_word)
    return Replays(TIME_BASE, recorded.settle, None if ranges is None else recorded.learn)
