"""proc, DTrace's provider of what happens to processes, from tracepoints and functions of Linux: dtrace_proc(4).

Each task of Linux is a thread (lwp-*). The first one of a process, whose pid is the process's (tgid), stands for the
process (create, exit). `linux_proc.d` translates the arguments.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, Place, given, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux.tasks import LWP, PROCESS, TASK
from kinst.runtime.providers.provider import Argument
from kinst.runtime.providers.structures import Structures

_NUMBER: Final = Argument("int")
_PATH: Final = Argument("char *")
_INFORMATION: Final = Argument("struct kernel_siginfo *", translated="siginfo_t *")
_HANDLER: Final = Argument("uintptr_t")

# task_struct.exit_code is what wait(2) gives: the signal that killed it, whether it dumped core, above them the status.
_SIGNAL: Final = 0x7F
_CORE: Final = 0x80
_IGNORED: Final = 1  # SIG_IGN as a handler, and TRACE_SIGNAL_IGNORED as a result
_INT: Final = 1 << 32


class _Ended(IntEnum):
    """CLD_*: how a process ended."""

    EXITED = 1
    KILLED = 2
    DUMPED = 3


class _Tasks:
    """The arguments of events, from those of tracepoints and functions."""

    def __init__(self, host: ProviderHost) -> None:
        self._number = Structures(host).number

    def created(self, at: Numbers) -> Sequence[int] | None:
        """sched_process_fork(parent, child): the child, its parent."""
        parent, child = at(0), at(1)
        return (child, parent) if self._is_first(child) else None

    def ended(self, at: Numbers) -> Sequence[int] | None:
        """sched_process_exit(task): how it ended."""
        if not self._is_first(at(0)):
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

    def _is_first(self, task: int) -> bool:
        return self._number(task, TASK, "pid") == self._number(task, TASK, "tgid")


_sent: Final = given(2, 2, 0)


def _failed(at: Numbers) -> Sequence[int] | None:
    """The return of a function that returns a negative error number. Its type is int: by all three ABIs the upper half
    of the register is not part of the result."""
    result = at(1) % _INT
    return (_INT - result,) if result >= _INT // 2 else None


def _events(tasks: _Tasks) -> tuple[Event, ...]:
    fork, exit_, generate = "sched_process_fork", "sched_process_exit", "signal_generate"
    return (
        Event("create", (tracepoint(fork, tasks.created),), (PROCESS, PROCESS)),
        Event("exit", (tracepoint(exit_, tasks.ended),), (_NUMBER,)),
        Event("lwp-create", (tracepoint(fork, given(1, 1)),), (LWP, PROCESS)),
        Event("lwp-start", (Place("fbt::schedule_tail:entry", "schedule_tail"),)),  # what a new task runs first
        Event("lwp-exit", (tracepoint(exit_),)),
        Event("exec", (Place("fbt::alloc_bprm:entry", "alloc_bprm", tasks.tried),), (_PATH,)),
        Event("exec-success", (tracepoint("sched_process_exec", tasks.executed),), (_PATH,)),
        Event("exec-failure", tuple(map(_failing, ("do_execveat_common", "kernel_execve"))), (_NUMBER,)),
        Event("signal-send", (tracepoint(generate, _sent),), (LWP, PROCESS, _NUMBER)),
        Event("signal-discard", (tracepoint(generate, tasks.discarded),), (LWP, PROCESS, _NUMBER)),
        Event("signal-handle", (tracepoint("signal_deliver", tasks.handled),), (_NUMBER, _INFORMATION, _HANDLER)),
    )


def _failing(function: str) -> Place:
    return Place(f"fbt::{function}*:return", function, _failed)


def proc_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_proc(4), and DTrace's guide. Without the type of tasks their members cannot be read: then it has no
    probes."""
    has_types = host.types.type_named(TASK) is not None
    return EventsProvider("proc", _events(_Tasks(host)) if has_types else (), host)
