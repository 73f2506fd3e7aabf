"""Events of Linux that DTrace has providers for: where they fire, and what their arguments become."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.runtime.patched.test_tracepoints import COMPILERS
from tests.targets.debuginfo.compiled import compiled as linked

SOURCE = """
typedef struct { unsigned int val; } kuid_t;
struct cred { kuid_t uid, euid, gid, egid; };
struct task_struct {
    int pid, tgid, prio;
    unsigned int __state;
    char comm[16];
    struct task_struct *real_parent;
    struct cred *cred;
};
struct rq { int cpu; };
struct cred root = {{1}, {2}, {3}, {4}};
struct task_struct init = {1, 1, 120, 0, "init", &init, &root};
struct task_struct thread = {8, 7, 100, 1, "worker", &init, &root};
struct rq queue = {5};
volatile int sink;

__attribute__((noipa)) void finish_task_switch(struct task_struct *before) { sink++; }
__attribute__((noipa)) void enqueue_task_fair(struct rq *rq, struct task_struct *p, int flags) { sink++; }
__attribute__((noipa)) void enqueue_task_rt(struct rq *rq, struct task_struct *p, int flags) { sink++; }
__attribute__((noipa)) void dequeue_task_fair(struct rq *rq, struct task_struct *p, int flags) { sink++; }
__attribute__((noipa)) void task_tick_fair(struct rq *rq, struct task_struct *p, int queued) { sink++; }
__attribute__((noipa)) void set_user_nice(struct task_struct *p, long nice) { p->prio = 120 + nice; }
__attribute__((noipa)) int mutex_lock_slowly(long *lock) { *lock = 1; return 0; }
__attribute__((noipa)) void mutex_lock(long *lock) { mutex_lock_slowly(lock); }
__attribute__((noipa)) void mutex_lock_io(long *lock) { *lock = 1; }
__attribute__((noipa)) int mutex_lock_interruptible(long *lock) { return *lock ? -4 : mutex_lock_slowly(lock); }
__attribute__((noipa)) int mutex_lock_killable(long *lock) { return mutex_lock_interruptible(lock); }
__attribute__((noipa)) int mutex_trylock(long *lock) { return !*lock && !mutex_lock_slowly(lock); }
__attribute__((noipa)) void mutex_unlock(long *lock) { *lock = 0; }
long first, second;
int locks(void)
{
    mutex_lock(&first);
    mutex_lock_io(&second);
    sink += mutex_trylock(&first) + mutex_lock_interruptible(&second);
    mutex_unlock(&first);
    sink += mutex_trylock(&first);
    mutex_unlock(&second);
    sink += mutex_lock_killable(&second);
    return 0;
}
int start(int turns)
{
    task_tick_fair(&queue, &init, 0);
    task_tick_fair(&queue, &init, 1);
    set_user_nice(&thread, -20);
    set_user_nice(&thread, -10);
    set_user_nice(&thread, -10);
    set_user_nice(&thread, -20);
    locks();
    sink = 0;
    enqueue_task_fair(&queue, &thread, 0);
    enqueue_task_rt(&queue, &init, 0);
    finish_task_switch(&thread);
    dequeue_task_fair(&queue, &init, 0);
    return sink;
}
"""
PROGRAM = """
sched:::enqueue, sched:::dequeue
{
    printf("%s cpu %d thread %d at %d, ", probename, args[2]->cpu_id, args[0]->pr_lwpid, args[0]->pr_pri);
    printf("%s %d of %d %d\\n", args[1]->pr_fname, args[1]->pr_pid, args[1]->pr_ppid, args[1]->pr_egid);
}
sched:::on-cpu { printf("on-cpu\\n"); }
sched:::tick { printf("tick %d\\n", args[0]->pr_lwpid); }
sched:::change-pri { printf("change-pri %d %d\\n", args[1]->pr_pid, args[2]); }
lockstat:::adaptive-acquire, lockstat:::adaptive-release
{
    this->is_first = args[0] == (uintptr_t)&`first;
    printf("%s %s\\n", probename, this->is_first ? "first" : args[0] == (uintptr_t)&`second ? "second" : "?");
}
"""
FIRED = """\
tick 1
change-pri 7 110
change-pri 7 100
adaptive-acquire first
adaptive-acquire second
adaptive-release first
adaptive-acquire first
adaptive-release second
adaptive-acquire second
enqueue cpu 5 thread 8 at 100, worker 7 of 1 4
enqueue cpu 5 thread 1 at 120, init 1 of 1 4
on-cpu
dequeue cpu 5 thread 1 at 120, init 1 of 1 4

start(1) = 0x4
"""


@pytest.mark.parametrize("machine", COMPILERS)
def test_tasks_and_queues_are_shown_as_dtrace_shows_them(machine: str, tmp_path: Path) -> None:
    image = linked(tmp_path, machine, {"kernel.c": SOURCE}, "-g", "-Wl,-Ttext=0x200000", *COMPILERS[machine][1:])
    options = ("-q", "--clock", "icount", "--call", "start(1)", "-n", PROGRAM)
    result = CliRunner().invoke(run, [*options, str(image.path)])
    assert result.exit_code == 0, result.output
    assert result.stdout == FIRED


def test_what_an_image_has_not_is_no_event(tmp_path: Path) -> None:
    image = linked(tmp_path, "amd64", {"kernel.c": SOURCE}, "-g")
    result = CliRunner().invoke(run, ["-n", "sched:::wakeup", str(image.path)])
    assert result.exit_code == 1
    assert "sched:::wakeup does not match any probes" in result.stderr


def test_with_qemu_they_are_refused_by_name() -> None:
    result = CliRunner().invoke(
        run, ["-n", "tcp:::send", "--on", "qemu-system-riscv64 -M virt", "samples/kernel-riscv64.elf"]
    )
    assert result.exit_code == 1
    assert "tcp:::send does not match any probes: provider tcp is for Linux that boots in kinst-run's own machine" in (
        result.stderr
    )
