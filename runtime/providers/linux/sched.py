"""sched, DTrace's provider of a scheduler's events, from tracepoints of Linux and functions that all of its versions
have: dtrace_sched(4). `linux_sched.d` translates the arguments.
"""

from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Place, given, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux.tasks import LWP, PROCESS
from kinst.runtime.providers.provider import Argument

_CPU: Final = Argument("struct rq *", translated="cpuinfo_t *")


def _queue(name: str, function: str) -> Event:
    """An event at a function that each class of the scheduler has: the task, and the run queue, from which its CPU is
    translated."""
    place = Place(f"fbt::{function}_*:entry", f"{function}_fair", given(1, 1, 0))
    return Event(name, (place,), (LWP, PROCESS, _CPU))


_EVENTS: Final = (
    Event("off-cpu", (tracepoint("sched_switch", given(2, 2)),), (LWP, PROCESS)),  # of the next task
    # The first function that a task runs after a switch to it, in schedule() or, for a new one, in schedule_tail().
    Event("on-cpu", (Place("fbt::finish_task_switch*:entry", "finish_task_switch"),)),
    Event("wakeup", (tracepoint("sched_waking", given(0, 0)),), (LWP, PROCESS)),
    _queue("enqueue", "enqueue_task"),
    _queue("dequeue", "dequeue_task"),
)


def sched_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_sched(4)."""
    return EventsProvider("sched", _EVENTS, host)
