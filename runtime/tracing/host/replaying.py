"""A guest's machine, and how its threads are told apart -> what replayed clauses need."""

from kinst.runtime.clauses.environment import GuestProfile
from kinst.runtime.hits.combining import Replays
from kinst.runtime.hits.counted import CountedSites
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.host.contract import TIME_BASE


def replays_of(system: System, profile: GuestProfile) -> Replays | None:
    """How recorded hits are replayed; None if all hits are dispatched: the host has no recorder, or --method trap."""
    counted = system.trap.counted
    if not isinstance(counted, CountedSites):
        return None
    recorded = counted.recorded
    ranges = profile.ranges(counted.forget_threads)
    if ranges is not None:
        recorded.know(ranges, system.host_word)
    return Replays(TIME_BASE, recorded.settle, None if ranges is None else recorded.learn)
