"""An image -> what probes may be drawn in it, with how often each is hit, by the independent count of a plain run."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Final
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.rewriting import Source, open_source
from tests.agree.linux import survey
from tests.agree.places import LINUX, MARKER, place
from tests.system.cases import BY_NAME, Case
from tests.system.plain import manifest_of, plain_run, watched

_MOST: Final = 6_000  # hits of one site, so that a run takes a fraction of a second
_MOST_OF_FUNCTION: Final = 15_000  # hits of all instructions of a function
SLOWER: Final = (12, 17)  # ns that an instruction takes, not 10
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
    timed: frozenset[str]  # functions that do something else if instructions take longer
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
    sites = _sites(case, "fbt:::entry")
    counts = plain_run(case, cpus).executed(sites.address).tolist()
    found = defaultdict[str, list[int]](list)
    for function, count in zip(sites.functions, counts, strict=True):
        found[function].append(count)
    return tuple((function, each[0]) for function, each in sorted(found.items()) if len(each) == 1 and each[0] > 0)


@dataclass(frozen=True, slots=True)
class _Sites:
    """What a description patches of an image, without what is far from the rest: trampolines are out of reach of one of
    these, which is refused."""

    functions: tuple[str, ...]
    address: NDArray[np.uint64]
    offset: NDArray[np.uint64]


def _sites(case: Case, description: str) -> _Sites:
    manifest, facts = manifest_of(case, description), open_source(Source(case.path)).program.image.facts
    windows = manifest.sites["address"] // np.uint64(facts.trampoline_window)
    kinds, counts = np.unique(windows, return_counts=True)
    sites = manifest.sites[windows == kinds[np.argmax(counts)]]
    offset = sites["address"] - manifest.functions["address"][sites["function"]]
    functions = tuple(manifest.function_name(row) for row in sites["function"].tolist())
    return _Sites(functions, np.ascontiguousarray(sites["address"]), offset)


def _small(case: Case) -> Subject:
    """A sample or firmware: all that it executes."""
    plain, sites = plain_run(case), _sites(case, "kinst:::")
    counts = plain.executed(sites.address)
    is_timed = np.zeros(len(counts), np.bool_)
    for duration in SLOWER:
        with patch("kinst.runtime.machine.clock.NANOSECONDS_PER_INSTRUCTION", duration):
            is_timed |= watched(case).executed(sites.address) != counts
    instructions, totals = list[tuple[str, int]](), defaultdict[str, int](int)
    for function, offset, count in zip(sites.functions, sites.offset.tolist(), counts.tolist(), strict=True):
        totals[function] += count
        if 0 < count <= _MOST:
            instructions.append((function, offset))
    is_sample, callout = case.is_sample, "callout_execute:::"
    return Subject(
        case.image,
        entries_of(case.image, 1),
        tuple(instructions),
        frozenset(sites.functions[row] for row in np.flatnonzero(is_timed).tolist()),
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
        frozenset(),
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
