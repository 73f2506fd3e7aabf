"""A Linux kernel -> what it executes from the first instruction to its power-off, by a hook of raw Unicorn on a plain
run: at virtual addresses, and at physical ones before paging is on. It takes minutes, and is kept."""

import hashlib
import json
import random
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.machine.loading.loaded import Loaded
from tests.agree.places import APPEND, FOLDER, MARKER, initrd, place
from tests.system.cases import KERNELS
from tests.system.counting import Trace, Window
from tests.system.plain import manifest_of

_MEMORY: Final = 256 << 20
_FUNCTIONS: Final = 800  # of those that are executed are kept
_MOST: Final = 3_000  # calls of one, so that a run does not take much longer
_MOST_EXECUTED: Final = 100_000
_KEPT: Final = "2"  # what is kept, and how it was counted: another number if that changes


@dataclass(frozen=True, slots=True)
class Function:
    """A function: how often it is called, and its instructions by offset with how often each is executed."""

    name: str
    entries: int
    instructions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """Functions of a kernel, drawn by lot, and the time (us) that the run takes."""

    time: int
    functions: tuple[Function, ...]


def survey(name: str, cpus: int) -> Survey:
    """What this kernel does on so many CPUs."""
    machine = name.removeprefix("linux-")
    key = hashlib.sha256(initrd(machine).read_bytes() + (APPEND[machine] + _KEPT).encode()).hexdigest()[:12]
    path = FOLDER / f"{name}-{cpus}-{key}.json"
    if not path.exists():
        path.write_text(json.dumps(asdict(_surveyed(name, cpus))))
    kept = json.loads(path.read_text())
    functions = (
        Function(one["name"], one["entries"], tuple((at, count) for at, count in one["instructions"]))
        for one in kept["functions"]
    )
    return Survey(kept["time"], tuple(functions))


def _surveyed(name: str, cpus: int) -> Survey:
    machine = name.removeprefix("linux-")
    with open_image(place(name).path) as file:
        trace = file.trace(
            machine=Machine(
                initrd=initrd(machine).read_bytes(), append=APPEND[machine], memory=_MEMORY, cpus=cpus, clock="icount"
            )
        )
    guest = trace.guest
    ram = guest.system.memory.regions[0]
    linked = [one for one in guest.loaded.segments if not ram.holds(one[0], one[2])]
    windows = [Window(start, size) for virtual, physical, size in linked for start in (virtual, physical)]
    seen = Executed(Trace(guest, tuple(windows), steps=4), guest.loaded)
    trace.run(seconds=60)
    assert MARKER.encode() in trace.console, f"{name} with {cpus} CPUs did not come to user space"
    return Survey(guest.system.clock.now() // 1000, tuple(_functions(name, seen)))


@dataclass(frozen=True, slots=True)
class Executed:
    """How often instructions were executed, by link address, before paging was on and since."""

    trace: Trace
    loaded: Loaded

    def counts(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Of each address."""
        physical = [self.loaded.physical(address) or 0 for address in addresses.tolist()]
        found: NDArray[np.int64] = self.trace.counts(addresses) + self.trace.counts(np.array(physical, np.uint64))
        return found


def _functions(name: str, seen: Executed) -> list[Function]:
    case = next(case for case in KERNELS if case.image == name)
    manifest = manifest_of(case, "fbt:::entry")
    functions = manifest.functions
    names = [manifest.function_name(row) for row in range(len(functions))]
    several = _repeated(names)
    rows = np.unique(manifest.sites["function"])
    calls = seen.counts(np.ascontiguousarray(functions["address"][rows])).tolist()
    found = [
        (row, count)
        for row, count in zip(rows.tolist(), calls, strict=True)
        if 0 < count <= _MOST and names[row] not in several
    ]
    random.Random(name).shuffle(found)
    kept = list[Function]()
    for row, count in found:
        start, size = int(functions["address"][row]), int(functions["size"][row])
        each = seen.counts(np.arange(start, start + size, dtype=np.uint64))
        if each.sum() <= _MOST_EXECUTED:
            at = np.flatnonzero(each)
            kept.append(Function(names[row], count, tuple(zip(at.tolist(), each[at].tolist(), strict=True))))
        if len(kept) == _FUNCTIONS:
            break
    return kept


def _repeated(names: list[str]) -> set[str]:
    once, again = set[str](), set[str]()
    for one in names:
        (again if one in once else once).add(one)
    return again
