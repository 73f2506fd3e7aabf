"""An image -> what probes may be drawn in it, with how often each is hit, by the independent count of a plain run."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from kinst.rewriter.rewriting import Source, open_source
from tests.agree.linux import survey
from tests.agree.places import LINUX, MARKER, place
from tests.system.cases import BY_NAME, Case
from tests.system.plain import manifest_of, plain_run

_MOST: Final = 6_000  # hits of one site, so that a run takes a fraction of a second
_MOST_OF_FUNCTION: Final = 15_000  # hits of all instructions of a function
_TICKS: Final = ("tick-200us", "tick-300us", "tick-1ms", "tick-2ms", "tick-7ms", "profile-1ms", "profile-4999")
_SLOW_TICKS: Final = ("tick-10ms", "tick-100ms", "tick-300ms", "tick-1s", "profile-97", "profile-11ms")
_TRACEPOINTS: Final = (
    *("sched:::on-cpu", "sched:::off-cpu", "sched:::wakeup", "sched:::enqueue", "sched:::dequeue", "sched:::*-cpu"),
    *("proc:::create", "proc:::exit", "proc:::exec", "proc:::exec-success", "proc:::lwp-start", "proc:::signal-send"),
    *("io:::start", "io:::done", "syscall:::entry", "syscall:::return", "syscall::openat:entry", "syscall::openat:"),
    *(
        "syscall::read:entry",
        "syscall::write:return",
        "syscall::execve:entry",
        "syscall::wait4:return",
        "syscall::*stat*:",
    ),
)


@dataclass(frozen=True, slots=True)
class Subject:
    """What can be drawn of an image."""

    name: str
    entries: tuple[tuple[str, int], ...]  # functions that are called, and how often
    instructions: tuple[tuple[str, int], ...]  # function and offset of instructions that are executed
    whole: tuple[str, ...]  # functions of which every instruction may be probed
    inlined: tuple[str, ...]  # functions with inlined copies
    static: tuple[str, ...]  # descriptions of static probes and tracepoints
    registers: int  # how many there are in regs[]
    calls: tuple[str, ...]  # for --call
    until: tuple[str, ...]  # patterns of lines that the console has
    ticks: tuple[str, ...]
    time: int  # of a run, in us

    @property
    def is_large(self) -> bool:
        """Whether a run takes seconds, so that a program should have more in it."""
        return self.name in LINUX


@cache
def subject(name: str) -> Subject:
    """What the image of this name has."""
    return _linux(name) if name in LINUX else _small(BY_NAME[name])


@cache
def entries_of(name: str, cpus: int) -> tuple[tuple[str, int], ...]:
    """Functions that a run to the guest's end calls, and how often, by a hook of raw Unicorn on the plain image; of
    names that several functions have, none."""
    if name in LINUX:
        return tuple((one.name, one.entries) for one in survey(name, cpus).functions)
    case = BY_NAME[name]
    manifest = manifest_of(case, "fbt:::entry")
    counts = plain_run(case, cpus).executed(np.ascontiguousarray(manifest.sites["address"])).tolist()
    found = defaultdict[str, list[int]](list)
    for row, count in enumerate(counts):
        found[manifest.function_name(int(manifest.sites["function"][row]))].append(count)
    return tuple((function, each[0]) for function, each in sorted(found.items()) if len(each) == 1 and each[0] > 0)


def _small(case: Case) -> Subject:
    """A sample or firmware: all that it executes."""
    plain, manifest = plain_run(case), manifest_of(case, "kinst:::")
    sites = manifest.sites
    counts = plain.executed(np.ascontiguousarray(sites["address"]))
    starts = manifest.functions["address"][sites["function"]]
    instructions, totals = list[tuple[str, int]](), defaultdict[str, int](int)
    for row, count in enumerate(counts.tolist()):
        function = manifest.function_name(int(sites["function"][row]))
        totals[function] += count
        if 0 < count <= _MOST:
            instructions.append((function, int(sites["address"][row] - starts[row])))
    is_sample, callout = case.is_sample, "callout_execute:::"
    return Subject(
        case.image,
        entries_of(case.image, 1),
        tuple(instructions),
        tuple(sorted(function for function, count in totals.items() if 0 < count <= _MOST_OF_FUNCTION)),
        ("critical_enter", "critical_exit", "spin_lock", "spin_unlock", "list_first") if is_sample else (),
        (f"{callout}callout_start", f"{callout}callout_end", callout) if is_sample else (),
        _registers(case.image),
        ('hash_bytes("agree", 5)', "fibonacci(8)") if is_sample else (),
        ("^cpu0", "^vfs", "^heap", "^em0") if is_sample else ("Platform Name", "Domain0 Name"),
        _TICKS,
        plain.run.time // 1000,
    )


def _linux(name: str) -> Subject:
    """Linux: some of what it executes, and its tracepoints."""
    seen = survey(name, 1)
    return Subject(
        name,
        entries_of(name, 1),
        tuple((one.name, offset) for one in seen.functions for offset, count in one.instructions if count <= _MOST),
        tuple(one.name for one in seen.functions if sum(count for _, count in one.instructions) <= _MOST_OF_FUNCTION),
        ("get_current", "fput_light", "file_inode", "kmalloc", "list_add"),
        _TRACEPOINTS,
        _registers(name),
        (),
        (MARKER,),
        _SLOW_TICKS,
        seen.time,
    )


def _registers(name: str) -> int:
    return len(open_source(Source(place(name).path)).program.image.facts.registers)
