"""Probes on lock prefixes of Linux, which the kernel takes away when it finds one CPU: it leaves the probes alone, they
fire as often as a hook of raw Unicorn on the plain image sees their instructions executed, and nothing else changes.
"""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.hits import Hit
from kinst.targets.image import Image
from kinst.targets.probe import parse_probe_names
from tests.images import at_hand, real_image
from tests.system.counting import Trace, Window
from tests.system.runs import LIMIT, Prepare

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not at_hand("linux-amd64"), reason="linux-amd64 was not downloaded"),
]

DESCRIPTION = "kinst::atomic_inc:entry"
# Without the time stamp counter, which is the host's, the kernel prints the same in every run.
COMMAND_LINE = "console=ttyS0 noapic nolapic acpi=off pci=off clearcpuid=tsc,tsc_deadline_timer"
UNTIL = "smp: Brought up 1 node"  # behind "Freeing SMP alternatives memory"
UNLOCKED, BREAKPOINT = 0x3E, 0xCC


@dataclass(frozen=True, slots=True)
class Booted:
    """What a boot left behind."""

    guest: Guest
    console: bytes
    hits: Counter[int]

    def bytes_at(self, addresses: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """The first byte of each instruction, as memory has it now."""
        ram = self.guest.system.memory.regions[0]
        found = [self.guest.loaded.physical(address) for address in addresses.tolist()]
        return np.array([ram.view[physical - ram.base] for physical in found if physical is not None], np.uint8)


def booted(descriptions: tuple[str, ...], prepare: Prepare = lambda _guest: None) -> Booted:
    hits: Counter[int] = Counter()

    def count(hit: Hit) -> None:
        hits[hit.address] += 1

    with open_image(real_image("linux-amd64")) as image:
        actions = dict.fromkeys(descriptions, count)
        trace = image.trace(actions=actions, machine=Machine(board="pc-amd64", clock="icount", append=COMMAND_LINE))
    prepare(trace.guest)
    assert trace.run(seconds=LIMIT, until=UNTIL) is End.UNTIL
    return Booted(trace.guest, trace.console, hits)


def listed_locks(image: Image) -> NDArray[np.uint64]:
    """Addresses in .smp_locks that are in .text: the kernel leaves its init code as it is."""
    table, text = image.section(".smp_locks"), image.section(".text")
    assert table is not None
    assert text is not None
    raw = np.frombuffer(image.read(table.address, table.size), "<i4").astype(np.int64)
    entries = np.uint64(table.address) + np.arange(len(raw), dtype=np.uint64) * np.uint64(4)
    sites = entries + raw.view(np.uint64)
    return sites[sites - np.uint64(text.address) < np.uint64(text.size)]


def test_the_kernel_takes_away_all_locks_but_those_that_are_probed() -> None:
    opened = open_source(Source(real_image("linux-amd64")))
    _, plan = plan_probes(opened, list(parse_probe_names(DESCRIPTION)))
    manifest = plan.manifest
    sites = np.ascontiguousarray(manifest.sites["address"])
    names = [manifest.probe_fields(row) for row in range(len(manifest.probes))]
    locks = listed_locks(opened.image)

    traces: list[Trace] = []
    regions = opened.image.code_regions
    windows = tuple(Window(region.address, region.size) for region in regions)

    plain = booted((), lambda guest: traces.append(Trace(guest, windows)))
    probed = booted(tuple(f"kinst::{function}:{offset}" for _, _, function, offset in names))

    assert len(np.intersect1d(sites, locks)) > 600
    assert set(plain.bytes_at(locks)) == {UNLOCKED}
    assert set(probed.bytes_at(np.setdiff1d(locks, sites))) == {UNLOCKED}
    assert set(probed.bytes_at(sites)) == {BREAKPOINT}
    executed = traces[0].counts(sites)
    assert [probed.hits[address] for address in sites.tolist()] == executed.tolist()
    assert executed.sum() > 1_000
    assert without_times(probed.console) == without_times(plain.console)


def without_times(console: bytes) -> bytes:
    """The probed kernel has fewer locks to take away, and is done sooner."""
    return re.sub(rb"(?m)^\[ *\d+\.\d+\] |audit\(\d+\.\d+:\d+\)", b"", console)
