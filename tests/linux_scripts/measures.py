"""Script -> what it must have said, beside the guest's own figure: tasks and CPUs, interrupts, memory."""

import re
from collections.abc import Iterator
from typing import Final

from tests.linux_scripts.checks import Check
from tests.linux_scripts.told import Boot, Figure, Run, rows

_KINDS: Final = ("hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu")
_SAMPLES: Final = 997  # a second
_MEANWHILE: Final = "one more may come while the kernel adds them up"


def softirqs(run: Run) -> Iterator[Figure]:
    counted = run.between("stat", "softirqs")
    for index, kind in enumerate(_KINDS):
        if known := run.field("stat", "softirq", 2 + index):
            yield Figure(f"{kind}, by /proc/stat", counted[kind], known, 1, _MEANWHILE)
    entered = run.between("tracing", "softirqs").total()
    yield Figure("all, by irq:softirq_entry", entered, run.event("softirq_entry"))


def hardirqs(run: Run) -> Iterator[Figure]:
    handled = run.between("tracing", "irqs").total()
    yield Figure("handlers, by irq:irq_handler_entry", handled, run.event("irq_handler_entry"))
    for name, count in run.between("stat", "irqs").items():
        number = int(name.split()[0])
        yield Figure(f"interrupt {name}, by /proc/stat", count, run.field("stat", "intr", 2 + number), 1, _MEANWHILE)


def timers(run: Run) -> Iterator[Figure]:
    expired = run.between("tracing", "timers")[""]
    yield Figure("expired, by timer:hrtimer_expire_entry", expired, run.event("hrtimer_expire_entry"))


def workqueues(run: Run) -> Iterator[Figure]:
    begun = run.between("tracing", "works").total()
    yield Figure("work begun, by workqueue_execute_start", begun, run.event("workqueue_execute_start"))


def wakeups(run: Run) -> Iterator[Figure]:
    woken = run.between("tracing", "wakeups")[""]
    yield Figure("wakeups, by sched:sched_wakeup", woken, run.event("sched_wakeup"))


def lock_contention(run: Run) -> Iterator[Figure]:
    waited = run.between("tracing", "locks").total()
    known = run.traced(r"contention_begin: \S+ \(flags=(?!MUTEX\))")  # who spins for a mutex begins again to sleep
    yield Figure("waits, by lock:contention_begin", waited, known, known // 20, "a wait counts when it ends")


def cpudist(run: Run) -> Iterator[Figure]:
    turns, on_cpu = (run.between("schedstat", row)[""] for row in ("turns", "on_cpu"))
    yield Figure("turns on a CPU, by /proc/schedstat", turns, run.field("schedstat", "cpu0", 9))
    known = run.field("schedstat", "cpu0", 7)
    yield Figure("ns on it", on_cpu, known, known // 50, "the turn in which it is read")


def run_queue_latency(run: Run) -> Iterator[Figure]:
    waited = run.between("schedstat", "waits")[""]
    known = run.field("schedstat", "cpu0", 8)
    yield Figure("ns of waiting, by /proc/schedstat", waited, known, known // 50, "the kernel's clock of a queue")


def off_cpu_stacks(run: Run) -> Iterator[Figure]:
    slept = [int(us) for (us,) in rows(run.text, r"sleep\n(?:\S+`\S+\n)+ *(\d+) us")]
    yield Figure("us of sleep's sleeps", max(slept, default=0), 1_800_000, 36_000, "timers end late, and one is killed")


def runqlen(run: Run) -> Iterator[Figure]:
    lengths = run.distribution("schedstat", r"CPU 0 \(tasks\)")
    waiting = sum((length - 1) * count for length, count in lengths.items() if length > 1)
    known = run.field("schedstat", "cpu0", 8) // 1_000_000
    yield Figure("ms that tasks waited, by /proc/schedstat", waiting * 1000 // _SAMPLES, known, known // 5, "samples")


def profile_stacks(run: Run) -> Iterator[Figure]:
    ticks = run.field("stat", "cpu0", 1) + run.field("stat", "cpu0", 2)
    sampled = run.between("stat", "user")[""] * 100 // _SAMPLES
    yield Figure("hundredths of a second in user mode", sampled, ticks, ticks // 10 + 2, "both are samples")


def page_faults(run: Run) -> Iterator[Figure]:
    known = run.field("vmstat", "pgfault", 1)
    why = "a new program's stack is no task's; what is tried again is counted once or twice"
    yield Figure("page faults, by /proc/vmstat", run.between("vmstat", "faults")[""], known, known // 50, why)


def page_allocations(run: Run) -> Iterator[Figure]:
    known = run.gained("vmstat", r"^pgalloc_\w+ (\d+)$")
    why = "pages that are asked for in bulk"
    yield Figure("pages, by /proc/vmstat", run.between("vmstat", "pages")[""], known, known // 20, why)


def cachestat(run: Run) -> Iterator[Figure]:
    added = run.between("tracing", "added")[""]
    yield Figure("pages added, by their event", added, run.event("mm_filemap_add_to_page_cache"))


def memleak(run: Run) -> Iterator[Figure]:
    kept = run.between("statfs", "objects")
    inodes = sum(count for name, count in kept.items() if "shmem_alloc_inode" in name)
    total, free = (run.gained("inodes", pattern) for pattern in (r"^(\d+) \d+$", r"^\d+ (\d+)$"))
    yield Figure("inodes of tmpfs that are left, by statfs()", inodes, total - free)


def slab_rates(run: Run) -> Iterator[Figure]:
    taken = run.between("tracing", "cache")
    allocated = taken.pop("kmalloc()", 0)
    yield Figure("objects, by kmem:kmem_cache_alloc", taken.total(), run.event("kmem_cache_alloc"))
    yield Figure("kmalloc(), by kmem:kmalloc", allocated, run.event("kmalloc"))


def shrinkers(run: Run) -> Iterator[Figure]:
    freed = sum(int(one) for (one,) in rows(run.trace, r".*mm_shrink_slab_end: .*return val (\d+)"))
    shrunk = run.between("tracing", "shrunk")[""]
    yield Figure("objects freed, by vmscan:mm_shrink_slab_end", shrunk, freed)


def oomkill(run: Run) -> Iterator[Figure]:
    killed = run.number(r"^(\d+) programs were killed$")
    yield Figure("kills, by /proc/vmstat", killed, run.field("vmstat", "oom_kill", 1))


def funccount(run: Run) -> Iterator[Figure]:
    if known := run.event("vfs_read"):
        yield Figure("calls, by a kprobe of the guest's", run.between("tracing", "called")["vfs_read"], known)


def funclatency(run: Run) -> Iterator[Figure]:
    if known := run.event("vfs_read_left") or run.event("vfs_read"):
        yield Figure("returns, by a kretprobe of the guest's", run.between("tracing", "left")["vfs_read"], known)


def slow_initcalls(boot: Boot) -> Iterator[Figure]:
    """`initcall_debug` makes the kernel tell how long each took. Task 0 calls those of consoles by itself."""
    calls, spent = next((int(count), int(us)) for count, us in rows(boot.text, r"(\d+) initcalls took (\d+) us"))
    of_consoles = set(re.findall(r"calling +(\S+?)\+.*@ 0\n", boot.console))
    returned = re.findall(r"initcall (\S+?)\+.* returned .* after (\d+) usecs", boot.console)
    known = [int(us) for name, us in returned if name not in of_consoles]
    yield Figure("initcalls, by the kernel's own messages", calls, len(known))
    yield Figure("us of all", spent, sum(known), sum(known) // 20, "the kernel's messages are in one of the two")


MEASURES: Final[dict[str, Check]] = {
    "softirqs": softirqs,
    "hardirqs": hardirqs,
    "timers": timers,
    "workqueues": workqueues,
    "wakeups": wakeups,
    "lock-contention": lock_contention,
    "cpudist": cpudist,
    "run-queue-latency": run_queue_latency,
    "off-cpu-stacks": off_cpu_stacks,
    "runqlen": runqlen,
    "profile-stacks": profile_stacks,
    "page-faults": page_faults,
    "page-allocations": page_allocations,
    "cachestat": cachestat,
    "memleak": memleak,
    "slab-rates": slab_rates,
    "shrinkers": shrinkers,
    "oomkill": oomkill,
}
BY_FUNCTION: Final[dict[str, Check]] = {"funccount": funccount, "funclatency": funclatency}
