"""Debian's kernels from the first instruction through twenty programs and a disk to power-off: plain, every instruction
counted by a hook of raw Unicorn, and with probes drawn by lot."""

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime import Machine, Options, api, trace
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.hits import Hit
from kinst.targets.manifest.packed import Manifest
from kinst.targets.probe import parse_probe_names
from tests.images import modules_of, real_image
from tests.linux_programs import PROGRAMS, START, initial_file_system, qemu, qemu_program
from tests.system.counting import Trace, Window
from tests.system.runs import Prepare
from tests.system.test_deferred_linux import is_probed
from tests.system.test_linux_disks import MODULES, TOOLS
from tests.writers.cpio import FILE, Entry

FUNCTIONS: Final = 500  # whose entry and return are probed
WHOLE: Final = 50  # of which every instruction is
INLINED: Final = ("file_inode", "hlist_unhashed", "dget")
_MOST: Final = 100_000  # executions of a function's instructions
_MEMORY: Final = 256 << 20
_LIMIT: Final = 200.0  # seconds of the machine's time
_BEFORE: Final = "mount -t devtmpfs dev /dev\n{load}mkdir /mnt; mount -t ext4 /dev/vda /mnt; cat /mnt/text\n"
_BEHIND: Final = """cp /tmp/file /mnt/file; umount /mnt
mount -t ext4 /dev/vda /mnt; cat /mnt/file; umount /mnt
poweroff -f
"""
# Runs are equal without the time stamp counter, which is the host's. A kernel that finds one CPU takes its lock
# prefixes away, but for those that have probes (test_lock_prefixes), and that is fewer instructions.
_APPEND: Final = {
    "amd64": "console=ttyS0 noapic nolapic noreplace-smp clearcpuid=tsc,tsc_deadline_timer",
    "arm64": "console=ttyAMA0",
    "riscv64": "console=ttyS0",
}
# QEMU's disk, with what ours has: no message-signalled interrupts, and no registers of virtio before its first version.
_DISK: Final = {
    "amd64": ("-device", "virtio-blk-pci,drive=disk,vectors=0"),
    "arm64": ("-device", "virtio-blk-device,drive=disk", "-global", "virtio-mmio.force-legacy=false"),
    "riscv64": ("-device", "virtio-blk-device,drive=disk", "-global", "virtio-mmio.force-legacy=false"),
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, its initial file system and its disk."""

    name: str
    folder: Path

    @property
    def machine(self) -> str:
        """What it is for."""
        return self.name.rpartition("-")[2]

    @property
    def _initrd(self) -> Path:
        return self.folder / "initrd"

    @property
    def _disk(self) -> Path:
        return self.folder / "disk"

    def prepare(self) -> None:
        """Make initial file system and disk."""
        modules = modules_of(self.name, "|".join(MODULES))
        load = "".join(f"insmod /{name}.ko\n" for name in MODULES if name in modules)
        entries = [Entry(f"{name}.ko", FILE, content) for name, content in modules.items()]
        init = f"{START}{_BEFORE.format(load=load)}{PROGRAMS}{_BEHIND}"
        self._initrd.write_bytes(initial_file_system(self.machine, init, entries))
        files = self.folder / "files"
        files.mkdir()
        (files / "text").write_text("text on a disk\n")
        with self._disk.open("wb") as file:
            file.truncate(12 << 20)
        subprocess.run([TOOLS[0], "-q", "-t", "ext4", "-d", files, self._disk], check=True, capture_output=True)

    def boot(
        self,
        *programs: str,
        actions: Mapping[str, Callable[[Hit], None]] | None = None,
        prepare: Prepare = lambda _guest: None,
    ) -> trace.Trace:
        """Run it to the power-off; `prepare` may look into the machine before it starts."""
        with api.open_image(real_image(self.name)) as image:
            booted = image.trace(
                *programs,
                actions=actions,
                machine=Machine(
                    clock="icount",
                    memory=_MEMORY,
                    append=_APPEND[self.machine],
                    initrd=self._initrd.read_bytes(),
                    disks=[self._disk],
                ),
                options=Options(d={"zdefs": True}),  # some functions have no instruction that can be probed
            )
        prepare(booted.guest)
        assert booted.run(seconds=_LIMIT) is End.POWER_OFF
        return booted

    def under_qemu(self) -> bytes | None:
        """The console there; None if QEMU is not installed. The disk is not written."""
        if shutil.which(qemu_program(self.machine)) is None:
            return None
        disk = ("-drive", f"file={self._disk},format=raw,if=none,id=disk,snapshot=on", *_DISK[self.machine])
        words = ("-nic", "none", "-initrd", str(self._initrd), "-append", _APPEND[self.machine])
        command = qemu(self.machine, real_image(self.name), self.folder, *words, *disk)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=True)
        return done.stdout


@dataclass(frozen=True, slots=True)
class Plain:
    """What a run without probes did."""

    console: bytes
    time: int
    trace: Trace
    loaded: Loaded

    def executed(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How often instructions were, at their link addresses or where they are loaded."""
        physical = np.array([self.loaded.physical(address) for address in addresses.tolist()], np.uint64)
        counts: NDArray[np.int64] = self.trace.counts(addresses)
        return counts + np.where(physical != addresses, self.trace.counts(physical), 0)


def plain_run(kernel: Kernel) -> Plain:
    """The kernel as it is, under the eyes of a hook of our own."""
    traces: list[Trace] = []

    def watch(guest: Guest) -> None:
        ram = guest.system.memory.regions[0]
        outside = [Window(virtual, size) for virtual, _, size in guest.loaded.segments if not ram.holds(virtual, size)]
        traces.append(Trace(guest, (*outside, Window(ram.base, ram.size)), steps=1))

    with kernel.boot(prepare=watch) as trace:
        return Plain(trace.console, trace.guest.system.clock.now(), traces[0], trace.guest.loaded)


@cache
def _instructions(name: str) -> Manifest:
    """All that can be probed."""
    program = open_source(Source(real_image(name))).program
    return manifest_of(resolve(program, list(parse_probe_names("kinst:::"))))[0]


def drawn(kernel: Kernel, plain: Plain) -> tuple[list[str], list[str]]:
    """Functions that the plain run executes, by lot, the same ones for ever: whose entry and return are to be probed,
    and all of whose instructions. Each name means one address, and each address has one name."""
    manifest = _instructions(kernel.name)
    executed = plain.executed(np.ascontiguousarray(manifest.sites["address"]))
    totals = np.bincount(manifest.sites["function"], executed, len(manifest.functions)).astype(int)
    names = [manifest.function_name(row) for row in range(len(totals))]
    addresses = manifest.functions["address"].tolist()
    at, called = Counter(addresses), Counter(names)
    candidates = sorted(
        name
        for name, address, total in zip(names, addresses, totals.tolist(), strict=True)
        if 0 < total < _MOST and at[address] == called[name] == 1
    )
    lot = random.Random(kernel.name)
    return lot.sample(candidates, FUNCTIONS), lot.sample(candidates, WHOLE)


@dataclass(frozen=True, slots=True)
class Probed:
    """What a run with probes did, by kind of probe ("fbt", "kinst", or "kinst::function:entry" of an inlined one)."""

    console: bytes
    time: int
    hits: Counter[tuple[str, int]]  # by kind and link address
    sites: Mapping[str, Counter[int]]  # link addresses that have probes, and how many
    system_calls: dict[str, int]
    ended: dict[str, int]  # programs by name


def probed_run(kernel: Kernel, functions: list[str], whole: list[str]) -> Probed:
    """The kernel with probes, which Python functions count, and two aggregations of D."""
    hits: Counter[tuple[str, int]] = Counter()

    def counting(kind: str) -> Callable[[Hit], None]:
        def count(hit: Hit) -> None:
            hits[kind, hit.address] += 1

        return count

    inlined = [f"kinst::{name}:{end}" for name in INLINED for end in ("entry", "return")]
    kinds = {f"fbt::{name}:": "fbt" for name in functions} | {f"kinst::{name}:": "kinst" for name in whole}
    actions = {text: counting(kind) for text, kind in (kinds | {text: text for text in inlined}).items()}
    with kernel.boot(_SYSTEM_CALLS, actions=actions) as trace:
        guest = trace.guest
        assert guest.code is not None
        original = guest.code.moved.original
        sites = {"fbt": _sites(guest, "fbt", functions), "kinst": _sites(guest, "kinst", whole)}
        sites |= {
            str(name): Counter(site.address for site in one.sites)
            for name, one in guest.prepared.planned.expansions.items()
        }
        found: Counter[tuple[str, int]] = Counter()
        for (kind, address), count in hits.items():
            found[kind, original(address)] += count
        # A tail call fires when what it calls has returned, which some tasks never do.
        waiting = map(original, guest.code.pending_returns.sites())
        found.update(("fbt", site) for site in waiting if site in sites["fbt"])
        return Probed(
            trace.console,
            guest.system.clock.now(),
            found,
            sites,
            trace.aggregation("calls"),
            trace.aggregation("ended"),
        )


_SYSTEM_CALLS: Final = """
syscall:::entry { @calls[probefunc] = count(); }
syscall:::return { @returned[probefunc] = count(); }
syscall::exit_group:entry { @ended[execname] = count(); }
"""


def _sites(guest: Guest, provider: str, functions: Collection[str]) -> Counter[int]:
    """Where a provider's probes of functions are, as the manifest says; without those that the kernel has replaced by
    what cannot be probed."""
    assert guest.code is not None
    manifest = guest.code.sites.manifest
    fields = map(manifest.probe_fields, range(len(manifest.probes)))
    wanted = {row for row, (mine, _, function, _) in enumerate(fields) if mine == provider and function in functions}
    pairs = zip(manifest.enablings["site"].tolist(), manifest.enablings["probe"].tolist(), strict=True)
    found = Counter(site for site, probe in pairs if probe in wanted)
    addresses = manifest.sites["address"]
    deferred = [row for row in found if manifest.is_deferred[row]]
    for row, is_there in zip(deferred, is_probed(guest, addresses[deferred]), strict=True):
        if not is_there:
            del found[row]
    return Counter({int(addresses[row]): count for row, count in found.items()})
