"""sched, DTrace's provider of a scheduler's events, from tracepoints of Linux and functions that all of its versions
have: dtrace_sched(4). `linux_sched.d` translates the arguments.
"""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, Place, function, given, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux.entered import Calls, as_int
from kinst.runtime.providers.linux.tasks import LWP, PROCESS, TASK
from kinst.runtime.providers.provider import Argument
from kinst.runtime.providers.structures import Structures

_CPU: Final = Argument("struct rq *", translated="cpuinfo_t *")
_PRIORITY: Final = Argument("int")
_CLASSES: Final = ("fair", "rt", "dl", "idle", "stop", "scx")
# Which of these a kernel calls to change a priority; `rt_mutex_setprio` lends one.
_CHANGING: Final = ("set_user_nice", "__sched_setscheduler", "rt_mutex_setprio")
_SWITCH: Final = "sched_switch"
_TRUE: Final = 0xFF  # the byte of a bool


class Switches:
    """sched_switch(is_preempted, task, next): whether the task waits for something or could go on."""

    def __init__(self, host: ProviderHost) -> None:
        self._number = Structures(host).number

    def slept(self, at: Numbers) -> Sequence[int] | None:
        """No arguments, if it waits."""
        return None if self._can_go_on(at) else ()

    def preempted(self, at: Numbers) -> Sequence[int] | None:
        """No arguments, if it could go on: another is to run instead, or it yields."""
        return () if self._can_go_on(at) else None

    def _can_go_on(self, at: Numbers) -> bool:
        # The state is 0 (TASK_RUNNING) of one that was to wait, and has got a signal.
        return bool(at(0) & _TRUE) or not (self._number(at(1), TASK, "__state") or self._number(at(1), TASK, "state"))


class _Priorities:
    """Functions that may change a task's priority, which is their first argument."""

    def __init__(self, host: ProviderHost) -> None:
        self._number = Structures(host).number
        self.places = tuple(
            place
            for name in _CHANGING
            for place in Calls(host, name).places(lambda at: (at(0), self._of(at(0))), self._changed)
        )

    def _of(self, task: int) -> int:
        return self._number(task, TASK, "prio")

    def _changed(self, kept: Sequence[int], _result: int) -> Sequence[int] | None:
        task, before = kept
        now = self._of(task)
        return None if now == before else (task, task, as_int(now))


def _ticked(at: Numbers) -> Sequence[int] | None:
    """task_tick(queue, task, is_other): the task. Timers of its own are no clock's tick."""
    return None if at(2) & _TRUE else (at(1), at(1))


def _remained(at: Numbers) -> Sequence[int] | None:
    """sched_exit_tp(is_switch)."""
    return None if at(0) & _TRUE else ()


def _queue(name: str, function: str) -> Event:
    """An event at a function that each class of the scheduler has: the task, and the run queue, from which its CPU is
    translated."""
    place = Place(f"fbt::{function}_*:entry", f"{function}_fair", given(1, 1, 0))
    return Event(name, (place,), (LWP, PROCESS, _CPU))


def _events(switches: Switches, priorities: _Priorities) -> tuple[Event, ...]:
    ticks = tuple(function(f"task_tick_{name}", _ticked) for name in _CLASSES)
    return (
        Event("off-cpu", (tracepoint(_SWITCH, given(2, 2)),), (LWP, PROCESS)),  # of the next task
        # The first function that a task runs after a switch to it, in schedule() or, for a new one, in schedule_tail().
        Event("on-cpu", (Place("fbt::finish_task_switch*:entry", "finish_task_switch"),)),
        Event("wakeup", (tracepoint("sched_waking", given(0, 0)),), (LWP, PROCESS)),
        _queue("enqueue", "enqueue_task"),
        _queue("dequeue", "dequeue_task"),
        Event("sleep", (tracepoint(_SWITCH, switches.slept),)),
        Event("preempt", (tracepoint(_SWITCH, switches.preempted),)),
        Event("remain-cpu", (tracepoint("sched_exit_tp", _remained),)),
        Event("tick", ticks, (LWP, PROCESS)),
        Event("change-pri", priorities.places, (LWP, PROCESS, _PRIORITY)),
    )


def sched_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_sched(4)."""
    return EventsProvider("sched", _events(Switches(host), _Priorities(host)), host)
