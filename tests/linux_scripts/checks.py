"""Script -> what it must have said, beside the guest's own figure. All but those of memory and time: `measures`."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from tests.linux_scripts.told import Figure, Run, histogram, rows

Check = Callable[[Run], Iterator[Figure]]


def syscalls_by_program(run: Run) -> Iterator[Figure]:
    yield Figure("system calls, by raw_syscalls:sys_enter", run.between("tracing", "calls")[""], run.event("sys_enter"))


def syscall_latency(run: Run) -> Iterator[Figure]:
    yield Figure("reads that dd makes", run.number(r"^dd +read +(\d+) +\d+ +\d+$"), 133)
    longest = run.number(r"^sleep +clock_nanosleep +\d+ +\d+ +(\d+)$")
    yield Figure("us of the longest sleep, 1 s", longest, 1_000_000, 20_000, "a tick, and the way back")


def failing_calls(run: Run) -> Iterator[Figure]:
    missing = run.console.count("ls: /nope: No such file")
    yield Figure("files that ls does not find", run.number(r"^ls +\w+ +2 +(\d+)$"), missing)


def read_sizes(run: Run) -> Iterator[Figure]:
    yield Figure("reads of 4 KiB by dd", histogram(run.text, "dd").get(4096, 0), 133)


def execsnoop(run: Run) -> Iterator[Figure]:
    started = run.lines(r"^ *\d+ +\d+ \S+ +[a-z/][a-z/].*$")
    yield Figure("programs started, by sched_process_exec", started, run.event("sched_process_exec"))


def exitsnoop(run: Run) -> Iterator[Figure]:
    ends = list(rows(run.window(), r" *\d+ +\d+ (\S+) +-?\d+ (exit|killed|core) +(\d+)"))
    yield Figure("programs ended, by sched_process_exit", len(ends), run.event("sched_process_exit"))
    yield Figure("that ended with status 7", ends.count(("sh", "exit", "7")), run.console.count("\nended 7\n"))
    killed = sum(how == "killed" and signal == "9" for _, how, signal in ends)
    yield Figure("that were killed by SIGKILL", killed, run.console.count("\nkilled 137\n"))


def forks(run: Run) -> Iterator[Figure]:
    made = run.between("stat", "tasks")[""]
    yield Figure("tasks made, by /proc/stat", made, run.field("stat", "processes", 1))


def killsnoop(run: Run) -> Iterator[Figure]:
    sent = run.lines(r"^ *\d+ \S+ +\d+ +\d+ \S+ +$")
    yield Figure("signals, by signal:signal_generate", sent, run.event("signal_generate"))
    killed = run.lines(r"^ *\d+ \S+ +(?:9|15) +\d+ \S+ +$")
    yield Figure("SIGTERM and SIGKILL", killed, run.traced(r"signal_generate: sig=(?:9|15) "))


def opensnoop(run: Run) -> Iterator[Figure]:
    opened = run.lines(r"^ *\d+ \S+ +-?\d+ +\d+ \S+$")
    yield Figure("files opened, by syscalls:sys_enter_openat", opened, run.event("sys_openat"))


def statsnoop(run: Run) -> Iterator[Figure]:
    asked = run.lines(r"^ *\d+ \S+ +newfstatat +\d+ ")
    yield Figure("newfstatat(), by its event", asked, run.event("sys_newfstatat"))


def mountsnoop(run: Run) -> Iterator[Figure]:
    yield Figure("tmpfs that is mounted", run.lines(r"^ *\d+ mount +mount +0 none on /mnt tmpfs$"), 1)
    yield Figure("and unmounted", run.lines(r"^ *\d+ umount +umount +0 /mnt$"), 1)
    yield Figure("or not", run.lines(r"^ *\d+ umount +umount +[1-9]\d* /nope$"), run.console.count("unmount /nope"))


def syncsnoop(run: Run) -> Iterator[Figure]:
    yield Figure("conv=fsync of dd", run.lines(r"^ *\d+ dd +fsync +\d+$"), 1)
    yield Figure("sync", run.lines(r"^ *\d+ sync +sync +\d+$"), 2)


def capable(run: Run) -> Iterator[Figure]:
    if known := run.event("cap_capable"):
        yield Figure("checks, by a kprobe of the guest's", run.between("tracing", "capabilities")[""], known)


def vfs_read_time(run: Run) -> Iterator[Figure]:
    yield Figure("reads by dd", sum(histogram(run.text, r"dd \(ns\)").values()), 133)


def filetop(run: Run) -> Iterator[Figure]:
    yield Figure("bytes that dd reads of the disk", run.number(r"^dd +vda +\d+ +(\d+) +\d+$"), 128 * 4096)
    yield Figure("and writes to it", run.number(r"^dd +vda +\d+ +\d+ +(\d+)$"), 5 * 4096)


def fileslower(run: Run) -> Iterator[Figure]:
    slow = [us for _, _, us in rows(run.window(), r"(dd) +\d+ read +(\d+) +(\d+) \S+") if int(us) >= 1000]
    if run.event("vfs_read"):
        why = "the guest's times are from a read to the next one"
        yield Figure("reads of dd of 1 ms or more", len(slow), _slow_reads(run), 3, why)


def _slow_reads(run: Run) -> int:
    pattern = r" +dd-(\d+) .* (\d+)\.(\d{6}): vfs_read: .*"
    times = [(pid, int(s) * 1_000_000 + int(us)) for pid, s, us in rows(run.trace, pattern)]
    return sum(pid == same and end - start >= 1000 for (pid, start), (same, end) in pairwise(times))


def filelife(run: Run) -> Iterator[Figure]:
    yield Figure("files that the shell makes and removes", run.lines(r"^rm +\d+ +\d+ file[123]$"), 3)


def vfsstat(run: Run) -> Iterator[Figure]:
    calls = run.between("tracing", "vfs")
    yield Figure("files that rm removes", calls["vfs_unlink"], 3)
    if known := run.event("vfs_read"):
        yield Figure("calls of vfs_read(), by a kprobe of the guest's", calls["vfs_read"], known)


def dcstat(run: Run) -> Iterator[Figure]:
    if known := run.event("lookup_fast"):
        yield Figure("lookups, by a kprobe of the guest's", run.between("tracing", "lookups")[""], known)


def block_io(run: Run) -> Iterator[Figure]:
    programs = {program for (program,) in rows(run.text, r"(\S+) reads from vda \(bytes\)")}
    requests = sum(sum(histogram(run.text, rf"{re.escape(one)} reads from vda \(bytes\)").values()) for one in programs)
    yield Figure("reads, by /sys/block/vda/stat", requests, run.field("disk", " ", 0))


def biolatency(run: Run) -> Iterator[Figure]:
    yield Figure("reads, by /sys/block/vda/stat", run.number(r"^vda: reads: (\d+) "), run.field("disk", " ", 0))
    spent = run.number(r"^vda: reads: \d+ requests, (\d+) ns$") // 1_000_000
    reads = run.field("disk", " ", 0)
    yield Figure("ms of reads", spent, run.field("disk", " ", 3), reads, "the kernel rounds each down")


def biosnoop(run: Run) -> Iterator[Figure]:
    for way, what, at in (("R", "read", 2), ("W", "written", 6)):
        sizes = [int(size) for (size,) in rows(run.text, rf" *\d+ \S+ +vda +{way} +\d+ +(\d+) +\d+")]
        yield Figure(f"sectors {what}, by /sys/block/vda/stat", sum(sizes) // 512, run.field("disk", " ", at))


def tcpconnect(run: Run) -> Iterator[Figure]:
    made, accepted, failed = (run.field("net/snmp", "Tcp:", at) for at in (5, 6, 7))
    yield Figure("connections made or not, by ActiveOpens", run.lines(r"^(connect|fail) +nc +\d+ 127\.0\.0\.1 "), made)
    yield Figure("accepted, by PassiveOpens", run.lines(r"^accept +nc +\d+ 127\.0\.0\.1 +80 "), accepted)
    yield Figure("refused, by AttemptFails", run.lines(r"^fail +nc +\d+ 127\.0\.0\.1 +81 "), failed)


def tcplife(run: Run) -> Iterator[Figure]:
    ends = list(rows(run.text, r"(127\S+):(\d+) +127\S+:(\d+) +(\d+) +(\d+) +\d+"))
    received = sum(int(got) for _, here, _, _, got in ends if here == "80")
    sent = sum(int(gone) for _, _, there, gone, _ in ends if there == "80")
    arrived = int(next(rows(run.console, r"(\d{4})"))[0])
    yield Figure("bytes received, by wc", received, arrived, 1, "a FIN counts as one")
    yield Figure("bytes sent", sent, arrived, 2, "so does a SYN")


# Those of which the guest knows nothing if its kernel refuses probes of its own, as some do at the entry of functions.
BY_PROBES: Final = frozenset(("capable", "dcstat", "fileslower", "funccount", "funclatency"))
CHECKS: Final[dict[str, Check]] = {
    "syscalls-by-program": syscalls_by_program,
    "syscall-latency": syscall_latency,
    "failing-calls": failing_calls,
    "read-sizes": read_sizes,
    "execsnoop": execsnoop,
    "exitsnoop": exitsnoop,
    "forks": forks,
    "killsnoop": killsnoop,
    "opensnoop": opensnoop,
    "statsnoop": statsnoop,
    "mountsnoop": mountsnoop,
    "syncsnoop": syncsnoop,
    "capable": capable,
    "vfs-read-time": vfs_read_time,
    "filetop": filetop,
    "fileslower": fileslower,
    "filelife": filelife,
    "vfsstat": vfsstat,
    "dcstat": dcstat,
    "block-io": block_io,
    "biolatency": biolatency,
    "biosnoop": biosnoop,
    "tcpconnect": tcpconnect,
    "tcplife": tcplife,
}
