"""Clauses about tasks, as scripts for an operating system have them: who runs, waits, calls and starts."""

from typing import Final

from tests.agree.program import Clause

TASKS: Final = (
    (
        Clause(("sched:::on-cpu",), "", ("self->t = timestamp",)),
        Clause(("sched:::off-cpu",), "self->t", ("@on[execname] = sum(timestamp - self->t)", "self->t = 0")),
    ),
    (
        Clause(("sched:::off-cpu",), "", ("self->b = timestamp",)),
        Clause(("sched:::on-cpu",), "self->b", ("@off[pid] = quantize(timestamp - self->b)", "self->b = 0")),
    ),
    (
        Clause(("sched:::enqueue",), "", ("arr[args[1]->pr_pid] = timestamp",)),
        Clause(("sched:::on-cpu",), "arr[tid]", ("@wait = quantize(timestamp - arr[tid])", "arr[tid] = 0")),
    ),
    (
        Clause(("syscall:::entry",), "", ("self->t = timestamp",)),
        Clause(("syscall:::return",), "self->t", ("@call[probefunc] = avg(timestamp - self->t)", "self->t = 0")),
    ),
    (Clause(("syscall:::return",), "errno", ("@failed[execname, probefunc, errno] = count()",)),),
    (Clause(("syscall::open*:entry",), "", ('printf("%s opens %s\\n", execname, copyinstr(arg1))',)),),
    (Clause(("sched:::wakeup",), "", ("@woken[args[1]->pr_pid] = count()",)),),
    (Clause(("proc:::exec-success", "proc:::exit"), "", ('printf("%s %d %d\\n", execname, pid, tid)',)),),
    (
        Clause(("syscall::read:entry",), "", ("self->a = arg2",)),
        Clause(("syscall::read:return",), "", ("@size = sum(arg0)",)),
    ),
    (Clause(("sched:::off-cpu",), "", ("self->off = timestamp",)),),
    (Clause(("fbt::do_filp_open:return",), "(int64_t)arg1 < 0", ("@open[(int64_t)arg1] = count()",)),),
    (
        Clause(("fbt::vfs_*:entry",), "", ("self->t = timestamp",)),
        Clause(("fbt::vfs_*:return",), "self->t", ("@vfs[probefunc] = quantize(timestamp - self->t)", "self->t = 0")),
    ),
    (Clause(("fbt::__kmalloc:entry", "fbt::kfree:entry"), "", ("@bytes[probefunc] = quantize(arg0)",)),),
    (Clause(("fbt::schedule:entry",), "", ("@who[execname, tid] = count()", "@where[stack(3)] = count()")),),
)
