"""proc, DTrace's provider of what happens to processes, from tracepoints and functions of Linux: dtrace_proc(4).

Each task of Linux is a thread (lwp-*). The first one of a process, whose pid is the process's (tgid), stands for the
process (create, exit). `linux_proc.d` translates the arguments.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, Place, Values, function, given, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux.entered import as_int
from kinst.runtime.providers.linux.tasks import LWP, PROCESS, TASK, is_first
from kinst.runtime.providers.provider import Argument
from kinst.runtime.providers.structures import Structures

_NUMBER: Final = Argument("int")
_PATH: Final = Argument("char *")
_SIGINFO: Final = "struct kernel_siginfo"
_INFORMATION: Final = Argument(f"{_SIGINFO} *", translated="siginfo_t *")
_HANDLER: Final = Argument("uintptr_t")

# task_struct.exit_code is what wait(2) gives: the signal that killed it, whether it dumped core, above them the status.
_SIGNAL: Final = 0x7F
_CORE: Final = 0x80
_IGNORED: Final = 1  # SIG_IGN as a handler, and TRACE_SIGNAL_IGNORED as a result
_FAULTS: Final = {  # signal -> what DTrace calls the fault (FLT*), by the signal's code or without
    4: ({5: 2, 6: 2}, 1),  # SIGILL: FLTPRIV of ILL_PRVOPC and ILL_PRVREG, FLTILL
    5: ({2: 4}, 3),  # SIGTRAP: FLTTRACE of TRAP_TRACE, FLTBPT
    7: ({}, 5),  # SIGBUS: FLTACCESS
    8: ({1: 8, 2: 7}, 9),  # SIGFPE: FLTIZDIV, FLTIOVF, FLTFPE
    11: ({}, 6),  # SIGSEGV: FLTBOUNDS
}


class _Ended(IntEnum):
    """CLD_*: how a process ended."""

    EXITED = 1
    KILLED = 2
    DUMPED = 3


class _Tasks:
    """The arguments of events, from those of tracepoints and functions."""

    def __init__(self, host: ProviderHost) -> None:
        self._number = Structures(host).number
        self._running: dict[int, int] = {}  # CPU -> the task that it switched to last

    def created(self, at: Numbers) -> Sequence[int] | None:
        """sched_process_fork(parent, child): the child, its parent."""
        parent, child = at(0), at(1)
        return (child, parent) if is_first(self._number, child) else None

    def ended(self, at: Numbers) -> Sequence[int] | None:
        """sched_process_exit(task): how it ended."""
        if not is_first(self._number, at(0)):
            return None
        code = self._number(at(0), TASK, "exit_code")
        if not code & _SIGNAL:
            return (_Ended.EXITED,)
        return (_Ended.DUMPED if code & _CORE else _Ended.KILLED,)

    def tried(self, at: Numbers) -> Sequence[int]:
        """alloc_bprm(descriptor, name): the path."""
        return (self._number(at(1), "struct filename", "name"),)

    def executed(self, at: Numbers) -> Sequence[int]:
        """sched_process_exec(task, old_pid, program): the path."""
        return (self._number(at(2), "struct linux_binprm", "filename"),)

    def discarded(self, at: Numbers) -> Sequence[int] | None:
        """signal_generate(signal, information, task, is_group, result): what was sent, if it is ignored."""
        return _sent(at) if at(4) == _IGNORED else None

    def handled(self, at: Numbers) -> Sequence[int] | None:
        """signal_deliver(signal, information, action): the signal, more about it, the handler's address or 0."""
        handler = self._number(at(2), "struct k_sigaction", "sa", "sa_handler")
        return None if handler == _IGNORED else (at(0), at(1), handler)

    def switched(self, at: Numbers) -> None:
        """sched_switch(is_preempted, task, next)."""
        self._running[at.firing.cpu] = at(2)

    def started(self, at: Numbers) -> Sequence[int] | None:
        """schedule_tail(), which a new task runs first."""
        task = self._running.get(at.firing.cpu, 0)
        return () if task and is_first(self._number, task) else None

    def faulted(self, at: Numbers) -> Sequence[int] | None:
        """force_sig_info_to_task(information, task, handler): the fault, and more about it."""
        signal = self._number(at(0), _SIGINFO, "si_signo")
        if signal not in _FAULTS:
            return None
        by_code, other = _FAULTS[signal]
        return by_code.get(as_int(self._number(at(0), _SIGINFO, "si_code")), other), at(0)


_sent: Final = given(2, 2, 0)


def _failed(at: Numbers) -> Sequence[int] | None:
    """The return of a function that returns a negative error number."""
    result = as_int(at(1))
    return (-result,) if result < 0 else None


def _cleared(at: Numbers) -> Sequence[int] | None:
    """The return of what sigtimedwait() calls: a signal that it took, or a negative error number."""
    result = as_int(at(1))
    return (result,) if result > 0 else None


def _events(tasks: _Tasks) -> tuple[Event, ...]:
    fork, exit_, generate = "sched_process_fork", "sched_process_exit", "signal_generate"
    return (
        Event("create", (tracepoint(fork, tasks.created),), (PROCESS, PROCESS)),
        Event("exit", (tracepoint(exit_, tasks.ended),), (_NUMBER,)),
        Event(
            "start",
            (tracepoint("sched_switch", tasks.switched), function("schedule_tail", tasks.started)),
            needs_all=True,
        ),
        Event("lwp-create", (tracepoint(fork, given(1, 1)),), (LWP, PROCESS)),
        Event("lwp-start", (Place("fbt::schedule_tail:entry", "schedule_tail"),)),  # what a new task runs first
        Event("lwp-exit", (tracepoint(exit_),)),
        Event("exec", (Place("fbt::alloc_bprm:entry", "alloc_bprm", tasks.tried),), (_PATH,)),
        Event("exec-success", (tracepoint("sched_process_exec", tasks.executed),), (_PATH,)),
        Event("exec-failure", tuple(map(_failing, ("do_execveat_common", "kernel_execve"))), (_NUMBER,)),
        Event("signal-send", (tracepoint(generate, _sent),), (LWP, PROCESS, _NUMBER)),
        Event("signal-discard", (tracepoint(generate, tasks.discarded),), (LWP, PROCESS, _NUMBER)),
        Event("signal-clear", (_CLEARING,), (_NUMBER,)),
        Event("fault", (function("force_sig_info_to_task", tasks.faulted),), (_NUMBER, _INFORMATION)),
        Event("signal-handle", (tracepoint("signal_deliver", tasks.handled),), (_NUMBER, _INFORMATION, _HANDLER)),
    )


def _returns(name: str, values: Values) -> Place:
    """The return of a function of which the compiler may have made a copy under a longer name."""
    return Place(f"fbt::{name}*:return", name, values)


def _failing(name: str) -> Place:
    return _returns(name, _failed)


_CLEARING: Final = _returns("do_sigtimedwait", _cleared)


def proc_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_proc(4), and DTrace's guide. Without the type of tasks their members cannot be read: then it has no
    probes."""
    has_types = host.types.type_named(TASK) is not None
    return EventsProvider("proc", _events(_Tasks(host)) if has_types else (), host)
