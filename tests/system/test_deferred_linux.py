"""Probes where Linux writes over its own text while it boots: they fire as often as a hook of raw Unicorn sees control
come there, whatever the kernel wrote when.
"""

import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.hits import Hit
from kinst.targets.arch.registry import NAMES
from kinst.targets.instruction import DEFERRED, Reason, Verdict
from kinst.targets.manifest.packed import Manifest
from kinst.targets.probe import parse_probe_names
from tests.images import at_hand, real_image
from tests.system.counting import Trace, Window
from tests.system.runs import Prepare

DRAWN = 250  # sites
MOST = 20_000  # executions of each
SECONDS = 1.4  # of the machine's time: behind alternatives, static calls, the first static keys and initcalls
# Quiet, since the serial line's interrupts come between two blocks of code, and those with probes are others. Without
# the time stamp counter, which is the host's, every run is the same.
COMMAND_LINE = {
    "amd64": "quiet noapic nolapic acpi=off pci=off clearcpuid=tsc,tsc_deadline_timer",
    "arm64": "quiet",
    "riscv64": "quiet",
}


@dataclass(frozen=True, slots=True)
class Booted:
    """What a boot left behind."""

    guest: Guest
    hits: Counter[int]  # by link address


def booted(arch: str, descriptions: tuple[str, ...] = (), prepare: Prepare = lambda _guest: None) -> Booted:
    fired: Counter[int] = Counter()

    def count(hit: Hit) -> None:
        fired[hit.address] += 1

    with open_image(real_image(f"linux-{arch}")) as image:
        actions = dict.fromkeys(descriptions, count)
        trace = image.trace(actions=actions, machine=Machine(clock="icount", append=COMMAND_LINE[arch]))
    guest = trace.guest
    prepare(guest)
    assert trace.run(seconds=SECONDS) is End.TIMEOUT
    hits: Counter[int] = Counter()
    for address, times in fired.items():
        hits[address if guest.code is None else guest.code.moved.original(address)] += times
    return Booted(guest, hits)


@pytest.mark.long
@pytest.mark.parametrize("arch", NAMES)
def test_drawn_sites_fire_whenever_control_comes_to_them(arch: str) -> None:
    if not at_hand(f"linux-{arch}"):
        pytest.skip(f"linux-{arch} was not downloaded")
    program = open_source(Source(real_image(f"linux-{arch}"))).program
    manifest = manifest_of(resolve(program, list(parse_probe_names("kinst:::"))))[0]
    addresses = np.ascontiguousarray(manifest.sites["address"])
    windows = tuple(Window(region.address, region.size) for region in program.image.code_regions)
    traces: list[Trace] = []

    def watch(guest: Guest) -> None:
        traces.append(Trace(guest, windows))

    plain = booted(arch, (), watch)
    executed = np.where(manifest.is_deferred, traces[0].counts(addresses), 0)
    ran = np.flatnonzero(executed)
    executed[ran[~is_probed(plain.guest, addresses[ran])]] = 0
    rows = drawn(manifest, executed, program.patched_at_boot)

    probed = booted(arch, tuple(":".join(("kinst", "", *manifest.probe_fields(row)[2:])) for row in rows), watch)
    came = traces[1].counts(addresses[rows]).tolist()
    names = [manifest.probe_name(row) for row in rows]
    found = [probed.hits[address] for address in addresses[rows].tolist()]
    assert dict(zip(names, found, strict=True)) == dict(zip(names, came, strict=True))
    # Nearly as often as in the plain run: blocks of code that end elsewhere let interrupts in elsewhere.
    assert np.mean(np.array(found) == executed[rows]) > 0.95


def is_probed(guest: Guest, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether what stands at addresses now can be probed by itself: paravirt calls become sti, which cannot."""
    memory = guest.system.memory.regions[0]
    text = np.zeros((len(addresses), 32), np.uint8)
    for virtual, physical, size in guest.loaded.segments:
        rows = np.flatnonzero(addresses - np.uint64(virtual) < np.uint64(size - 16))
        places = (addresses[rows] - np.uint64(virtual)).astype(np.int64) + physical - memory.base
        text[rows, :16] = np.frombuffer(memory.view, np.uint8)[places[:, None] + np.arange(16)]
    starts = np.arange(len(addresses)) * 32
    found = dissector(guest.system.arch).dissect(text.reshape(-1), 0, np.stack([starts, starts + 16], axis=1))
    first = np.searchsorted(found.address, starts.astype(np.uint64))
    answer: NDArray[np.bool_] = found.verdict[first] != Verdict.REFUSE
    return answer


def drawn(manifest: Manifest, executed: NDArray[np.int64], ranges: NDArray[np.uint64]) -> list[int]:
    """Rows of deferred sites that the plain kernel executes, of every reason as many; each has a probe of its own."""
    addresses = manifest.sites["address"]
    reason = ranges[np.searchsorted(ranges[:, 0], addresses, "right") - 1, 2]
    is_candidate = (executed > 0) & (executed < MOST)
    chosen: list[int] = []
    for one in DEFERRED:
        candidates = np.flatnonzero(is_candidate & (reason == one)).tolist()
        random.Random(one).shuffle(candidates)
        chosen += candidates[: DRAWN // len(DEFERRED)]
    assert len(chosen) > DRAWN // 3
    assert Reason.STATIC_KEY in reason[chosen]
    return sorted(chosen)
