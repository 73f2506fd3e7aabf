"""What the plain image does, counted independently; which functions to probe."""

import mmap
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.runtime.machine.memory import Region
from kinst.runtime.tracing.guests.guest import Guest
from kinst.targets.manifest.packed import Manifest
from kinst.targets.probe import parse_probe_names
from tests.system.cases import Case
from tests.system.counting import Trace, Window
from tests.system.runs import Run, run

FUNCTIONS = 60  # at least so many are probed
EXECUTIONS = 400_000  # and so many instructions of theirs are executed, about
_PROBE = 256  # bytes of text that are looked for in RAM


@dataclass(frozen=True, slots=True)
class Plain:
    """A plain run with its trace."""

    run: Run
    trace: Trace
    distances: tuple[int, ...]  # from link addresses to where the text ran: where it was loaded, and copies of it

    def executed(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How often the instructions at link addresses were executed, copies included."""
        counts = [self.trace.counts(addresses + np.uint64(distance % 2**64)) for distance in self.distances]
        total: NDArray[np.int64] = np.sum(counts, axis=0)
        return total


@cache
def plain_run(case: Case, cpus: int = 1) -> Plain:
    """Run the image as it is, under the eyes of a hook of our own; once, since runs are kept."""
    return watched(case, cpus)


def watched(case: Case, cpus: int = 1) -> Plain:
    """As `plain_run`, another time."""
    traces: list[Trace] = []

    def watch(guest: Guest) -> None:
        ram = guest.system.memory.regions[0]
        outside = [Window(virtual, size) for virtual, _, size in guest.loaded.segments if not ram.holds(virtual, size)]
        traces.append(Trace(guest, (*outside, Window(ram.base, ram.size))))

    done = run(case, cpus=cpus, prepare=watch)
    bias = done.guest.loaded.bias
    found = Plain(done, traces[0], (bias, *copies_of(done)))
    for region in done.guest.system.memory.regions:
        give_back(region)
    return found


def give_back(region: Region) -> None:
    """Pages of zeros that were only read take memory as others do: until they are given back, for runs are kept."""
    is_empty = ~np.frombuffer(region.view, np.uint64).reshape(-1, mmap.PAGESIZE // 8).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_empty, [False])).astype(np.int8)))
    buffer = region.view.obj
    assert isinstance(buffer, mmap.mmap)
    for first, end in edges.reshape(-1, 2).tolist():
        buffer.madvise(mmap.MADV_REMOVE, first * mmap.PAGESIZE, (end - first) * mmap.PAGESIZE)


def copies_of(done: Run) -> tuple[int, ...]:
    """Distances of copies that the guest made of its own text: most of its pages must agree on one."""
    ram, loaded = done.guest.system.memory.regions[0], done.guest.loaded
    contents = list(filled(ram.view))
    found: Counter[int] = Counter()
    for region in loaded.image.code_regions:
        text = loaded.image.read(region.address, region.size)
        for offset in range(0, region.size - _PROBE, max(_PROBE, region.size // 8)):
            address, sample = region.address + offset, text[offset : offset + _PROBE]
            if text.count(sample) == 1:
                places = (ram.base + at for at in occurrences(contents, sample))
                found.update(place - address for place in places if loaded.physical(address) != place)
    return tuple(distance for distance, count in found.items() if count > 2)


def filled(view: memoryview) -> Iterator[tuple[int, bytes]]:
    """The parts of a memory that anything is in, with an empty page on either side: offset and bytes. Most guests leave
    most of it empty, and each sample is looked for in all that there is."""
    is_filled = np.frombuffer(view, np.uint64).reshape(-1, mmap.PAGESIZE // 8).any(axis=1)
    is_near = np.convolve(is_filled, np.ones(3, np.int8), "same") > 0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_near, [False])).astype(np.int8)))
    for first, end in (edges.reshape(-1, 2) * mmap.PAGESIZE).tolist():
        yield first, bytes(view[first:end])


def occurrences(contents: Sequence[tuple[int, bytes]], sample: bytes) -> Iterator[int]:
    """Where a sample that is not all zeros begins in a memory, of which there are the parts that are filled."""
    for start, content in contents:
        at = content.find(sample)
        while at >= 0:
            yield start + at
            at = content.find(sample, at + 1)


@lru_cache(maxsize=2)  # those of all instructions are large
def manifest_of(case: Case, description: str) -> Manifest:
    """What rewriting the image for a probe description comes to."""
    _, plan = plan_probes(open_source(Source(case.path)), list(parse_probe_names(description)))
    return plan.manifest


@cache
def drawn_functions(case: Case) -> tuple[str, ...]:
    """Names of functions that the plain run executes, drawn by lot; the same ones for ever."""
    manifest = manifest_of(case, "kinst:::")
    counts = plain_run(case).executed(np.ascontiguousarray(manifest.sites["address"]))
    per_function = np.bincount(manifest.sites["function"], counts, len(manifest.functions)).astype(int)
    totals: Counter[str] = Counter()
    for row, total in enumerate(per_function.tolist()):
        totals[manifest.function_name(row)] += total
    candidates = sorted(name for name, total in totals.items() if 0 < total <= EXECUTIONS // 4)
    random.Random(case.image).shuffle(candidates)
    drawn: list[str] = []
    spent = 0
    for name in candidates:
        if spent + totals[name] <= EXECUTIONS:
            drawn.append(name)
            spent += totals[name]
        if len(drawn) >= FUNCTIONS and spent > EXECUTIONS * 3 // 4:
            break
    return tuple(drawn)


def drawn_probes(case: Case) -> tuple[str, ...]:
    """A description of every instruction of every drawn function."""
    return tuple(f"kinst::{name}:" for name in drawn_functions(case))
