"""Runs that are interrupted by snapshots, and runs that continue from these -> what each of them left behind."""

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.machine.snapshots.ram import guest_regions
from kinst.runtime.machine.system import System
from kinst.runtime.trace import Trace
from kinst.runtime.tracing.hits import Hit
from tests.system.cases import Case
from tests.system.runs import let_go
from tests.system.state import MORE_REGISTERS

# Without the time stamp counter, which is the host's, the kernel for amd64 does the same in every run.
_APPEND = {"linux-amd64": "console=ttyS0 noreplace-smp clearcpuid=tsc,tsc_deadline_timer"}


@dataclass(frozen=True, slots=True)
class Left:
    """A machine at the end: its time, what its CPUs are, their registers by CPU and name, and RAM as digests of
    megabytes."""

    time: int
    cpus: tuple[tuple[bool, bool, int], ...]
    registers: dict[tuple[int, str], int]
    memory: tuple[str, ...]
    exit_code: int


def left_by(system: System) -> Left:
    """Everything that a guest could tell another machine by."""
    registers = {}
    for cpu in system.cpus:
        system._load(cpu)  # control registers in a saved state read as garbage
        for name in (*system.arch.registers, *MORE_REGISTERS[system.arch.name]):
            registers[cpu.number, name] = cpu.registers.get(name)
    memory = tuple(
        hashlib.sha256(region.view[start : start + (1 << 20)]).hexdigest()
        for region in guest_regions(system.memory)
        for start in range(0, region.size, 1 << 20)
    )
    cpus = tuple((cpu.is_on, cpu.is_waiting, cpu.lines) for cpu in system.cpus)
    return Left(system.clock.now(), cpus, registers, memory, system.exit_code)


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot in a file, and how much the guest had printed by then."""

    path: Path
    printed: int


class _At:
    """Calls a function at times of the machine, between two instructions; the guest does not notice."""

    def __init__(self, times: Sequence[int], call: Callable[[int], None]) -> None:
        self._times, self._call = sorted(times), call

    def deadline(self) -> int | None:
        return self._times[0] if self._times else None

    def advance(self) -> None:
        self._call(self._times.pop(0))


def traced(
    case: Case, cpus: int, start: Path | None = None, actions: dict[str, Callable[[Hit], None]] | None = None
) -> Trace:
    """A trace of a case that has not begun, or of one that begins with a snapshot."""
    append = None if start is not None else _APPEND.get(case.image)
    machine = Machine(board=case.machine, cpus=cpus, clock="icount", append=append, start=start)
    with open_image(case.path) as image:
        return image.trace(actions=actions, machine=machine)


@cache
def whole(case: Case, cpus: int) -> tuple[Left, bytes]:
    """What a run leaves behind that nothing interrupts, and what it prints."""
    trace = traced(case, cpus)
    let_go(trace, case.until, case.asks)
    return left_by(trace.guest.system), trace.console


def drawn_times(case: Case, cpus: int, count: int) -> list[int]:
    """Times at which an instruction ends, the same ones for ever."""
    draw = random.Random(f"{case.image} {cpus}")
    return [10 * draw.randrange(1, whole(case, cpus)[0].time // 10 - 1) for _ in range(count)]


def taken_at(case: Case, cpus: int, times: Sequence[int], folder: Path) -> list[Taken]:
    """Snapshots at these times, of one run, which goes on to its end as if nobody had looked."""
    trace, found = traced(case, cpus), list[Taken]()

    def take(time: int) -> None:
        path = folder / f"{time}.snap"
        trace.guest.snapshots.write(path)
        found.append(Taken(path, len(trace.console)))

    trace.guest.system.attach_observer(_At(times, take))
    let_go(trace, case.until, case.asks)
    assert (left_by(trace.guest.system), trace.console) == whole(case, cpus)
    return found


def taken_at_hits(case: Case, cpus: int, hits: dict[str, int], folder: Path) -> list[Taken]:
    """Snapshots when probes fire for the nth time, before the probed instruction."""
    found, left = list[Taken](), dict(hits)

    def take(hit: Hit) -> None:
        name = f"{hit.probe.function}:{hit.probe.name}"
        left[name] = left.get(name, 0) - 1
        if left[name] == 0:
            path = folder / f"{len(found)}.snap"
            trace.guest.snapshots.ask(path)
            found.append(Taken(path, len(trace.console)))

    trace = traced(case, cpus, actions=dict.fromkeys((f"fbt::{name}" for name in hits), take))
    let_go(trace, case.until, case.asks)
    return found


def differences(case: Case, cpus: int, taken: Taken) -> list[str]:
    """What a run that continues from a snapshot leaves behind otherwise than the whole run."""
    trace = traced(case, cpus, taken.path)
    let_go(trace, case.until, case.asks)
    before, after = whole(case, cpus)[0], left_by(trace.guest.system)
    found = [
        f"{what}: {one!r} -> {other!r}"
        for what, one, other in (
            ("console", whole(case, cpus)[1][taken.printed :], trace.console),
            ("time", before.time, after.time),
            ("CPUs", before.cpus, after.cpus),
            ("exit code", before.exit_code, after.exit_code),
        )
        if one != other
    ]
    found += [
        f"CPU {key[0]}: {key[1]}: {one:#x} -> {after.registers[key]:#x}"
        for key, one in before.registers.items()
        if one != after.registers[key]
    ]
    pairs = zip(before.memory, after.memory, strict=True)
    return [*found, *(f"megabyte {number} of memory" for number, (one, other) in enumerate(pairs) if one != other)]
