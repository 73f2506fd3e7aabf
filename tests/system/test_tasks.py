"""Linux' tasks: what probes tell of them agrees with the kernel's own accounts."""

import re
from pathlib import Path

import pytest

from tests.images import at_hand
from tests.system.linux_runs import initrd_of, run_linux

MACHINES = ("linux-amd64", "linux-arm64", "linux-riscv64")
# Kernels and how many CPUs they have.
SYSTEMS = [(name, 1) for name in at_hand(*MACHINES)] + [(name, 2) for name in at_hand("linux-arm64", "linux-riscv64")]
ACCOUNTS = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
{work}
grep -E '^(ctxt|processes)' /proc/stat
reboot -f
"""
# show_stat() writes /proc/stat: what was counted until it is called is what it will write.
COUNTED = r"""
fbt::wake_up_new_task:entry { forks++; }
fbt::finish_task_switch*:entry { switches++; }
sched:::off-cpu { left++; }
fbt::show_stat:entry { printf("ctxt %d\nleft %d\nprocesses %d\n", switches, left, forks); }
syscall::exit_group:entry { @ended[execname] = count(); }
END { printa("ended %s %@d\n", @ended); trunc(@ended); }
"""
# Its shell sleeps by itself, in a process of its own: that is no other program.
ENDED = {"busybox": 1, "mount": 1, "init": 200, "grep": 1}
STORM = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); sleep 0.3 & done; wait; echo all 200 ended"
# What a task keeps from a system call's entry to its return is its own, whatever other tasks do in between.
KEPT = r"""
self int seen;
self int pid;
syscall:::entry { @fresh[self->seen == 0 && self->pid == 0] = count(); self->pid = pid; self->call = probefunc; }
syscall:::entry { self->seen++; }
syscall:::return /self->pid/ { @wrong[execname] = sum(self->pid != pid || self->call != probefunc); }
END { printa("wrong %s %@d\n", @wrong); }
"""


def init_of(folder: Path, text: str) -> Path:
    path = folder / "init"
    path.write_text(text)
    return path


@pytest.mark.long
@pytest.mark.parametrize(("name", "cpus"), SYSTEMS)
def test_probes_count_what_the_kernel_counts(name: str, cpus: int, tmp_path: Path) -> None:
    """While 200 programs run at once: forks and context switches, who ends, and variables of tasks that come and go."""
    initrd = initrd_of(name.rpartition("-")[2], init_of(tmp_path, ACCOUNTS.format(work=STORM)), tmp_path)
    text, console = run_linux(name, initrd, [COUNTED, KEPT], more=["--cpus", str(cpus)])
    assert "all 200 ended" in console
    told = {word: int(number) for word, number in re.findall(r"^(ctxt|processes) (\d+)$", console, re.MULTILINE)}
    counted = {word: int(number) for word, number in re.findall(r"^(ctxt|left|processes) (\d+)$", text, re.MULTILINE)}
    # The kernel counts a task before the probe fires; another CPU may be in between.
    assert 0 <= told["processes"] - counted["processes"] < cpus
    assert told["processes"] > 270
    assert abs(counted["ctxt"] - told["ctxt"]) <= 2  # the kernel adds up its own after the probe has fired
    assert abs(counted["left"] - told["ctxt"]) <= 2
    assert {name: int(count) for name, count in re.findall(r"^ended (\S+) (\d+)$", text, re.MULTILINE)} == ENDED
    wrong = re.findall(r"^wrong (\S+) (\d+)$", text, re.MULTILINE)
    assert {program for program, _ in wrong} >= {"init", "grep"}
    assert {count for _, count in wrong} == {"0"}


# panic() prints where it was called from, by the kernel's own unwinder, which marks what it only guesses with "?".
PANIC = """#!/bin/sh
/bin/busybox mount -t proc proc /proc
echo c > /proc/sysrq-trigger
"""
TRACE = re.compile(r"^ ?(?:\[<[0-9a-f]+>\] )?(\? )?(\w+)(?:\.[\w.]+)?\+0x([0-9a-f]+)/0x[0-9a-f]+$", re.MULTILINE)


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand(*MACHINES))
def test_a_stack_is_what_the_kernel_prints(name: str, tmp_path: Path) -> None:
    initrd = initrd_of(name.rpartition("-")[2], init_of(tmp_path, PANIC), tmp_path)
    program = "fbt::panic:entry { stack(50); }"
    text, console = run_linux(name, initrd, [program], more=["--append", "panic=-1 console=ttyS0 console=ttyAMA0"])
    told = [(function, int(offset, 16)) for guess, function, offset in TRACE.findall(console) if not guess]
    seen = [
        (function.partition(".")[0], int(offset or "0", 16))
        for function, offset in re.findall(r"^ +\w+`([\w.]+)(?:\+0x([0-9a-f]+))?$", text, re.MULTILINE)
    ]
    after = [
        one for one in told if one[0] not in ("dump_stack_lvl", "dump_stack", "panic", "dump_backtrace", "show_stack")
    ]
    assert seen[0][0] == "panic"
    assert len(seen) == len(after) + 1 > 6
    # The outermost is in assembly, where a place has several names.
    assert [offset for _, offset in seen[1:-1]] == [offset for _, offset in after[:-1]]
