"""sched, DTrace's provider of a scheduler's events, from a Linux kernel's tracepoints and functions that all versions
have: dtrace_sched(4). `linux_sched.d` translates the arguments.
"""

from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Place, given, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux_tasks import LWP, PROCESS
from kinst.runtime.providers.provider import Argument

_CPU: Final = Argument("struct rq *", translated="cpuinfo_t *")


def _queue(name: str, function: str) -> Event:
    """At the functions of all classes of the scheduler: the task, and the queue's CPU."""
    place = Place(f"fbt::{function}_*:entry", f"{function}_fair", given(1, 1, 0))
    return Event(name, (place,), (LWP, PROCESS, _CPU))


_EVENTS: Final = (
    Event("off-cpu", (tracepoint("sched_switch", given(2, 2)),), (LWP, PROCESS)),  # the task that comes
    # The first function that every task runs when it comes, new ones included.
    Event("on-cpu", (Place("fbt::finish_task_switch*:entry", "finish_task_switch"),)),
    Event("wakeup", (tracepoint("sched_waking", given(0, 0)),), (LWP, PROCESS)),
    _queue("enqueue", "enqueue_task"),
    _queue("dequeue", "dequeue_task"),
)


def sched_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_sched(4)."""
    return EventsProvider("sched", _EVENTS, host)
