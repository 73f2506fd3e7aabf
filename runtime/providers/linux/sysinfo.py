"""sysinfo, DTrace's provider of the statistics that sar(1) and mpstat(1) show, from system calls and tracepoints of
Linux. Each event's argument is by how much the statistic rises.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, Place, function, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux.sched import Switches
from kinst.runtime.providers.linux.tasks import TASK, is_first
from kinst.runtime.providers.provider import Argument
from kinst.runtime.providers.structures import Structures

_AMOUNT: Final = (Argument("uint64_t"),)
_ONE: Final = (1,)
_SIGN: Final = 1 << 63
# Statistic -> the system calls that it counts; of others, the bytes that they return.
_CALLS: Final = {
    "sysread": ("read", "readv", "pread64", "preadv", "preadv2"),
    "syswrite": ("write", "writev", "pwrite64", "pwritev", "pwritev2"),
    "sysexec": ("execve", "execveat"),
    "msg": ("msgsnd", "msgrcv"),
    "sema": ("semop", "semtimedop"),
}
_BYTES: Final = {"readch": "sysread", "writech": "syswrite"}
_TRACEPOINTS: Final = {"pswitch": "sched_switch", "cpumigrate": "sched_migrate_task", "modload": "module_load"}


def _once(_at: Numbers) -> Sequence[int]:
    return _ONE


def _transferred(at: Numbers) -> Sequence[int] | None:
    """The return of a system call: how many bytes; negative numbers are errors."""
    return (at(1),) if 0 < at(1) < _SIGN else None


class _Tasks:
    """Statistics of tasks."""

    def __init__(self, host: ProviderHost) -> None:
        self._number, self._switches = Structures(host).number, Switches(host)

    def forked(self, at: Numbers) -> Sequence[int] | None:
        """sched_process_fork(parent, child), of a process."""
        return _ONE if is_first(self._number, at(1)) else None

    def preempted(self, at: Numbers) -> Sequence[int] | None:
        """sched_switch(is_preempted, task, next)."""
        return None if self._switches.preempted(at) is None else _ONE

    def idled(self, at: Numbers) -> Sequence[int] | None:
        """sched_switch(is_preempted, task, next), to the task that has no work."""
        return None if self._number(at(2), TASK, "pid") else _ONE


def _events(host: ProviderHost) -> Iterable[Event]:
    def handlers(statistic: str) -> Iterable[str]:
        return (f"{host.arch.linux.system_calls.prefix}{call}" for call in _CALLS[statistic])

    for statistic in _CALLS:
        yield _event(statistic, *(function(name, _once) for name in handlers(statistic)))
    for statistic, calls in _BYTES.items():
        yield _event(statistic, *(function(name, _transferred, "return") for name in handlers(calls)))
    for statistic, name in _TRACEPOINTS.items():
        yield _event(statistic, tracepoint(name, _once))
    if host.types.type_named(TASK) is not None:
        tasks = _Tasks(host)
        yield _event("sysfork", tracepoint("sched_process_fork", tasks.forked))
        yield _event("inv_swtch", tracepoint("sched_switch", tasks.preempted))
        yield _event("idlethread", tracepoint("sched_switch", tasks.idled))


def _event(name: str, *places: Place) -> Event:
    return Event(name, places, _AMOUNT)


def sysinfo_provider(host: ProviderHost) -> EventsProvider:
    """The events that Linux has."""
    return EventsProvider("sysinfo", tuple(_events(host)), host)
