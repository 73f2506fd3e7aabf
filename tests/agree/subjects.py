"""An image -> what probes may be drawn in it, with how often each is hit, by the independent count of a plain run."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from kinst.rewriter.rewriting import Source, open_source
from tests.system.cases import BY_NAME, SAMPLES, Case
from tests.system.plain import manifest_of, plain_run

FIRMWARE: Final = ("opensbi-1.1", "opensbi-1.6")
NAMES: Final = (*(case.image for case in SAMPLES), *FIRMWARE)
_MOST: Final = 6_000  # hits of one site, so that a run takes a fraction of a second
_MOST_OF_FUNCTION: Final = 15_000  # hits of all instructions of a function


@dataclass(frozen=True, slots=True)
class Subject:
    """What can be drawn of an image."""

    case: Case
    entries: tuple[tuple[str, int], ...]  # functions that are called, and how often
    instructions: tuple[tuple[str, int], ...]  # function and offset of instructions that are executed
    whole: tuple[str, ...]  # functions of which every instruction may be probed
    inlined: tuple[str, ...]  # functions with inlined copies
    static: tuple[str, ...]  # descriptions of static probes
    registers: int  # how many there are in regs[]
    calls: tuple[str, ...]  # for --call
    until: tuple[str, ...]  # patterns of lines that the console has
    time: int  # of a run, in us


@cache
def subject(name: str) -> Subject:
    """What the image of this name has."""
    case = BY_NAME[name]
    plain = plain_run(case)
    manifest = manifest_of(case, "kinst:::")
    sites = manifest.sites
    counts = plain.executed(np.ascontiguousarray(sites["address"]))
    starts = manifest.functions["address"][sites["function"]]
    instructions, totals = list[tuple[str, int]](), defaultdict[str, int](int)
    for row, count in enumerate(counts.tolist()):
        function = manifest.function_name(int(sites["function"][row]))
        totals[function] += count
        if 0 < count <= _MOST:
            instructions.append((function, int(sites["address"][row] - starts[row])))
    is_sample = case.is_sample
    return Subject(
        case,
        entries_of(name, 1),
        tuple(instructions),
        tuple(sorted(function for function, count in totals.items() if 0 < count <= _MOST_OF_FUNCTION)),
        ("critical_enter", "critical_exit", "spin_lock", "spin_unlock", "list_first") if is_sample else (),
        ("callout_execute:::callout_start", "callout_execute:::callout_end", "callout_execute:::") if is_sample else (),
        len(open_source(Source(case.path)).program.image.facts.registers),
        ('hash_bytes("agree", 5)', "fibonacci(8)") if is_sample else (),
        ("^cpu0", "^vfs", "^heap", "^em0") if is_sample else ("Platform Name", "Domain0 Name"),
        plain.run.time // 1000,
    )


@cache
def entries_of(name: str, cpus: int) -> tuple[tuple[str, int], ...]:
    """The functions that a run to the guest's end calls, and how often, by a hook of raw Unicorn on the plain image; of
    names that several functions have, none."""
    case = BY_NAME[name]
    manifest = manifest_of(case, "fbt:::entry")
    counts = plain_run(case, cpus).executed(np.ascontiguousarray(manifest.sites["address"])).tolist()
    found = defaultdict[str, list[int]](list)
    for row, count in enumerate(counts):
        found[manifest.function_name(int(manifest.sites["function"][row]))].append(count)
    return tuple((function, each[0]) for function, each in sorted(found.items()) if len(each) == 1 and 0 < each[0])
