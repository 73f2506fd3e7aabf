"""What `kinst-run --on` counts is what QEMU itself counts, function by function.

    python -m tests.live [NAME...]        (`poe live`)

Each image boots once under QEMU with the entries of all functions counted, or their returns, and QEMU's own plugin
(`tests.qemu_plugin`) counts in the same run how often the trampoline of each of these sites is executed. One run, two
independent counts: no difference is allowed but for a CPU that is stopped between the two. Functions in which a
trampoline may be left before its site are left out. Prints a row an image.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.registry import dissector
from kinst.runtime.live.room.layout import layout_of
from kinst.runtime.machine.devices.fdt import flatten
from kinst.runtime.machine.devices.fdt_reader import unflatten
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image, open_image
from kinst.targets.instruction import Flow
from kinst.targets.manifest.packed import Manifest, find_manifest
from tests.bench.linux import PANIC, RIVALS
from tests.image_list import RealImage
from tests.images import device_tree, members_of, real_image
from tests.linux_programs import START, initial_file_system
from tests.qemu_plugin.plugin import Plugin, counting_plugin

Addresses = NDArray[np.uint64]
_BOUND: Final = 300  # seconds a run
_LIST: Final = "{ @[probefunc] = count(); }"
_NO_SERVERS: Final = "No bootstrap code loaded"  # GNU Mach, without the Hurd
_OPENSBI: Final = "Boot HART MEDELEG"  # among the last that it says of itself


@dataclass(frozen=True, slots=True)
class Subject:
    """A real image, QEMU's command for it, and what of its console ends it."""

    image: str
    on: str
    until: str = ""
    append: str = ""
    probes: str = "fbt:::entry"
    base: int = 0  # where it is loaded, if it is linked to 0
    start: int = 0  # where QEMU puts a kernel's first byte, or that of its room
    tree: str = ""  # the device tree, if the board does not make its own
    programs: str = ""  # the machine whose busybox it runs
    seed: int = 0  # of 64 bits, by which a kernel moves (KASLR), to the same place each time; 0: it gets none from here
    copies: bool = False  # U-Boot, which says itself how far away its copy is
    moved: int = 0  # how far away that is, where it is not asked
    behind: RealImage | None = None  # the package's file with U-Boot's own device tree at its end

    @property
    def cpus(self) -> int:
        """Each may be stopped in the middle of a trampoline."""
        words = shlex.split(self.on)
        return int(words[words.index("-smp") + 1]) if "-smp" in words else 1


def _linux(image: str, machine: str, *more: str, probes: str = "fbt:::entry", seed: int = 0) -> Subject:
    rival = RIVALS[machine]
    on = shlex.join([rival.program, *rival.board, "-m", "512M", *more])
    append = rival.command_line if seed else f"{rival.command_line} nokaslr"
    until = _OFFSET if seed else PANIC
    return Subject(image, on, until, append, probes, start=_STARTS.get(machine, 0), seed=seed)


def _pc(image: str, on: str, more: str = "", probes: str = "fbt:::entry") -> Subject:
    """Linux for amd64, with programs that take system calls, interrupts and faults, until it powers off."""
    return Subject(image, _PC + on, append=f"console=ttyS0 panic=-1 {more}", probes=probes, programs="amd64")


def _xen(image: str, *more: str) -> Subject:
    on = shlex.join(["qemu-system-aarch64", "-M", "virt,virtualization=on,gic-version=2", *_CORTEX, *more])
    return Subject(image, on, _NO_DOM0, start=_STARTS["arm64"])


def _board(image: str, on: str, console: str, start: int = 0, tree: str = "") -> Subject:
    """Linux on a board that is none of ours. Without a seed it stays where it is linked."""
    return Subject(image, on, _STOPPED, f"{console} panic=-1 nokaslr", start=start, tree=tree)


_STARTS: Final = {"arm64": 0x4020_0000, "riscv64": 0x8020_0000}  # behind 2 MiB of RAM, or behind the firmware
_CORTEX: Final = ("-cpu", "cortex-a57", "-m", "512M")
_NO_DOM0: Final = "Could not set up DOM0 guest OS"
_SEED: Final = 0x1234_5678_9ABC_DEF0
_OFFSET: Final = "Kernel Offset"  # Linux says itself by how much it has moved, when it panics
_MOVED: Final = re.compile(rb"Kernel Offset: (0x[0-9a-f]+) from")
_RETURNS: Final = "fbt:::return"
_PROGRAMS: Final = f"""{START}
md5sum /bin/busybox > /dev/null
head -c 65536 /dev/zero | gzip -c > /dev/null
poweroff -f
"""
_STOPPED: Final = "Kernel panic"  # whatever the reason: not all boards have all that Linux asks for
_ARM: Final = "qemu-system-aarch64 -M "
_PC: Final = "qemu-system-x86_64 -m 512M -M "
_ARM_START: Final = 0x20_0000  # where a board has RAM at 0
_RAM: Final = 0x8000_0000
_RISCV: Final = "qemu-system-riscv64 -m 256M -M "
_UBOOT: Final = "^reloc off += 0x[0-9a-f]{16}"
_RELOCATED: Final = re.compile("reloc off += 0x([0-9a-f]{16})")
_CONSOLE: Final = "console"
SUBJECTS: Final = (
    Subject("u-boot-riscv64", f"{_RISCV}virt", _UBOOT, copies=True),
    Subject("u-boot-riscv64", f"{_RISCV}virt", _UBOOT, probes=_RETURNS, copies=True),
    Subject("u-boot-riscv64-smode", f"{_RISCV}virt -smp 4", _UBOOT, copies=True),
    Subject("u-boot-arm64", f"{_ARM}virt -cpu cortex-a57 -m 256M", _UBOOT, copies=True),
    Subject("u-boot-arm64", f"{_ARM}virt -cpu cortex-a57 -m 1G", _UBOOT, probes=_RETURNS, copies=True),
    Subject(
        *("u-boot-amd64", f"{_PC}q35", "Hit any key"),
        moved=0x1DE1_0000,  # bdinfo says so with 512 MiB; keys come too late to stop it there
        behind=RealImage("u-boot-qemu", "all", "trixie", r"usr/lib/u-boot/qemu-x86_64/u-boot\.rom"),
    ),
    Subject("opensbi-1.9", f"{_RISCV}virt", _OPENSBI, base=_RAM),
    Subject("opensbi-1.6", f"{_RISCV}virt", _OPENSBI, base=_RAM),
    Subject("opensbi-1.6", f"{_RISCV}spike", _OPENSBI, base=_RAM),
    Subject("opensbi-1.6", f"{_RISCV}sifive_u -smp 5", _OPENSBI, base=_RAM),
    Subject("opensbi-1.6", f"{_RISCV}virt -smp 4", _OPENSBI, base=_RAM),
    Subject("opensbi-1.6", f"{_RISCV}virt -smp 4", _OPENSBI, probes=_RETURNS, base=_RAM),
    Subject("gnumach", f"{_PC}q35", _NO_SERVERS, "console=com0"),
    Subject("gnumach", f"{_PC}pc", _NO_SERVERS, "console=com0", _RETURNS),
    _linux("linux-amd64", "amd64"),
    _linux("linux-amd64", "amd64", probes=_RETURNS),
    _linux("linux-6.12-amd64", "amd64"),
    _linux("linux-6.12-amd64", "amd64", probes=_RETURNS),
    _pc("linux-amd64", "q35 -smp 4"),
    _pc("linux-amd64", "q35 -smp 4", "pti=on"),
    _pc("linux-6.12-amd64", "q35 -smp 4", "pti=on"),
    _pc("linux-amd64", "pc -smp 2", "pti=on", _RETURNS),
    _linux("linux-arm64", "arm64"),
    _linux("linux-arm64", "arm64", "-smp", "4"),
    _linux("linux-6.12-arm64", "arm64"),
    _linux("linux-arm64", "arm64", seed=_SEED),
    _linux("linux-6.12-arm64", "arm64", "-smp", "4", seed=_SEED),
    _xen("xen-arm64"),
    _xen("xen-arm64", "-smp", "4"),
    _xen("xen-4.17-arm64"),
    _xen("xen-4.17-arm64", "-smp", "4"),
    _linux("linux-riscv64", "riscv64"),
    _linux("linux-riscv64", "riscv64", "-smp", "4"),
    _linux("linux-arm64", "arm64", probes=_RETURNS),
    _linux("linux-riscv64", "riscv64", probes=_RETURNS),
    Subject("opensbi-1.6", f"{_RISCV}virt,aclint=on,aia=aplic-imsic", _OPENSBI, base=_RAM),
    _board("linux-amd64", f"{_PC}microvm,acpi=off", "console=ttyS0"),
    _board("linux-amd64", f"{_PC}isapc -cpu qemu64", "console=ttyS0"),
    _board(
        "linux-arm64",
        f"{_ARM}virt,secure=on,virtualization=on -cpu cortex-a72 -smp 2 -m 5G",
        "console=ttyAMA0",
        _STARTS["arm64"],
    ),
    _board("linux-6.1-board-arm64", f"{_ARM}raspi3b -smp 4", "console=ttyAMA0", _ARM_START, "bcm2837-rpi-3-b"),
    _board(
        "linux-6.1-board-arm64",
        f"{_ARM}xlnx-zcu102 -smp 4 -m 2G",
        "console=ttyPS0 earlycon",
        _ARM_START,
        "zynqmp-zcu102-rev1.0",
    ),
    _board("linux-6.1-board-arm64", f"{_ARM}xlnx-versal-virt -smp 4 -m 2G", "console=ttyAMA0 earlycon", _ARM_START),
    _board(
        "linux-riscv64", "qemu-system-riscv64 -M sifive_u -smp 5 -m 2G", "console=ttySIF0 earlycon", _STARTS["riscv64"]
    ),
    _board(
        "linux-riscv64",
        "qemu-system-riscv64 -M microchip-icicle-kit -smp 5 -m 3G -serial null -serial stdio",
        "console=ttyS1 earlycon",
        _STARTS["riscv64"],
        "mpfs-icicle-kit",
    ),
)


@dataclass(frozen=True, slots=True)
class Beside:
    """Two counts of one run, by function. `difference`: what is not alike, as text; empty if all is."""

    ours: Mapping[str, int]
    plugins: Mapping[str, int]
    slack: int  # entries that the plugin may have more of: a CPU may be stopped in the middle of a trampoline

    @property
    def difference(self) -> str:
        """Which function has not the same count."""
        names = sorted(self.ours.keys() | self.plugins.keys())
        behind = {name: self.plugins.get(name, 0) - self.ours.get(name, 0) for name in names}
        wrong = {name: count for name, count in behind.items() if count}
        if all(count > 0 for count in wrong.values()) and sum(wrong.values()) <= self.slack:
            return ""
        return ", ".join(f"{name} {self.ours.get(name, 0)} not {self.plugins.get(name, 0)}" for name in [*wrong][:5])


def beside(image: Path, subject: Subject, folder: Path) -> Beside | None:
    """Boot it; None: QEMU has no plugins here.

    Raises AssertionError: a run failed.
    """
    made, _, moved = _counted(image, subject, folder, subject.on)  # makes the image, in which the sites are
    manifest = find_manifest(made)
    assert manifest is not None
    link = _executed(manifest)
    room = layout_of(made, manifest)
    if subject.copies or subject.moved:
        load = link + np.uint64(subject.moved or _distance(folder))
    elif room is not None:
        load = link - np.uint64(room.start % (1 << 64)) + np.uint64(subject.start)
    else:
        load = link + np.array([_to_load(made, address) + subject.base for address in link.tolist()], np.uint64)
    link = load if subject.base else link + np.uint64(moved % (1 << 64))  # other code is there
    plugin = counting_plugin(shlex.split(subject.on)[0], np.concatenate([link, load]), folder)
    if plugin is None:
        return None
    option = plugin.option
    _, ours, again = _counted(image, subject, folder, f"{subject.on} -plugin {option}")
    assert moved == again, "it has a seed, or does not move"
    found: Mapping[str, int] = _by_function(plugin, manifest, (link, load))
    unsure = _with_branches(open_image(image), manifest)
    first, second = ({name: count for name, count in one.items() if name not in unsure} for one in (ours, found))
    return Beside(first, second, subject.cpus)


def _executed(manifest: Manifest) -> Addresses:
    """Where hits of each site are executed: at the beginning of its trampoline, unless others share it. The jump to it
    may begin before the site."""
    sites = manifest.sites
    _, row, count = np.unique(sites["trampoline"], return_inverse=True, return_counts=True)
    return np.where(count[row] == 1, sites["trampoline"], sites["address"])


def _with_branches(original: Image, manifest: Manifest) -> set[str]:
    """Functions with a site that a branch in its trampoline may lead away from: it is executed less often than that."""
    jumps, sites = manifest.jumps, manifest.sites
    row = np.maximum(np.searchsorted(jumps["address"], sites["address"], "right") - 1, 0)
    start = jumps["address"][row]
    covered = (start < sites["address"]) & (sites["address"] < start + jumps["size"][row])
    found, machine = set[str](), dissector(original.facts)
    for first, site in zip(start[covered].tolist(), sites[covered], strict=True):
        code = np.frombuffer(original.read(first, int(site["address"]) - first), np.uint8)
        flows = machine.dissect(code, first, np.array([[0, len(code)]])).flow
        if (flows == Flow.BRANCH).any():
            found.add(manifest.function_name(int(site["function"])))
    return found


def _counted(image: Path, subject: Subject, folder: Path, on: str) -> tuple[Image, dict[str, int], int]:
    """The standalone image of a run, its counts, and by how many bytes the kernel moved."""
    run = str(Path(sys.executable).with_name("kinst-run"))
    words = [
        run,
        "-q",
        "--console",
        str(folder / "console"),
        "--format",
        "json",
        "--on",
        on,
        "--wall-timeout",
        f"{_BOUND}s",
    ]
    words += ["--until", subject.until] if subject.until else []
    words += ["--append", subject.append] if subject.append else []
    words += ["--dtb", str(device_tree(subject.tree))] if subject.tree else []
    if subject.programs:
        initrd = folder / "initrd.cpio"
        initrd.write_bytes(initial_file_system(subject.programs, _PROGRAMS))
        words += ["--initrd", str(initrd)]
    words += ["--dtb", str(_seeded(subject, folder))] if subject.seed else []
    words += _to_the_prompt(folder) if subject.copies else []
    if subject.behind is not None:
        words += ["--dtb", str(_own_tree(subject, folder))]
    words += ["-n", f"{subject.probes} {_LIST}", str(image)]
    cache = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(words, env=cache, capture_output=True, check=False, timeout=_BOUND * 2)
    assert done.returncode == 0, (done.returncode, done.stderr.decode(errors="replace"), done.stdout[-200:])
    (path,) = (folder / "kinst-rewrite" / "live").glob("*.elf")
    (found,) = json.loads(done.stdout)["dtrace"]["aggregations"]
    counts = {one["keys"][0]: one["value"] for one in found["aggregation-data"]}
    moved = _MOVED.search((folder / "console").read_bytes()) if subject.seed else None
    assert bool(moved) == bool(subject.seed), "it has not moved"
    return open_image(path), counts, int(moved[1], 16) if moved else 0


def _seeded(subject: Subject, folder: Path) -> Path:
    """The board's device tree with the subject's seed."""
    out, words = folder / "seeded.dtb", shlex.split(subject.on)
    words[words.index("-M") + 1] += f",dumpdtb={out}"
    subprocess.run([*words, "-nographic"], check=True, capture_output=True, timeout=_BOUND)
    tree = unflatten(out.read_bytes())
    chosen = next(one for one in tree.root.children if one.name == "chosen")
    chosen.properties["kaslr-seed"] = subject.seed.to_bytes(8, "big")
    out.write_bytes(flatten(tree.root, reserved=tree.reservations))  # without the padding: Linux takes 2 MiB at most
    return out


def _to_the_prompt(folder: Path) -> list[str]:
    """Options for U-Boot: a key stops it from starting something, and then it tells where it is."""
    (folder / "typed").write_text("\nbdinfo\n")
    return ["--input", str(folder / "typed"), "--prompt", "Hit any key|=> ", "--console", str(folder / _CONSOLE)]


def _distance(folder: Path) -> int:
    """How far U-Boot's copy is from where it was linked, by its own account."""
    found = _RELOCATED.search((folder / _CONSOLE).read_text(errors="replace"))
    assert found is not None, "bdinfo has it"
    return int(found[1], 16)


def _own_tree(subject: Subject, folder: Path) -> Path:
    assert subject.behind is not None
    (member,) = members_of(f"{subject.image}-tree", subject.behind)
    content, tree = member.read_bytes(), folder / "tree.dtb"
    at = open_image(real_image(subject.image)).segments[0].file_size
    tree.write_bytes(content[at : at + int.from_bytes(content[at + 4 : at + 8], "big")])
    return tree


def _to_load(image: Image, address: int) -> int:
    """From a link address to where it is in memory: code runs there before the MMU is on."""
    for one in image.segments:
        if one.kind == PT_LOAD and one.address <= address < one.address + one.size:
            return (one.load_address - one.address) % (1 << 64)
    raise AssertionError(f"{address:#x}: in no segment")


def _by_function(plugin: Plugin, manifest: Manifest, places: tuple[Addresses, Addresses]) -> Counter[str]:
    """What the plugin counted at two places of each site, which may be one."""
    counts = [plugin.counts()[np.searchsorted(plugin.addresses, place)] for place in places]
    executed = np.where(places[0] == places[1], counts[0], counts[0] + counts[1])
    found = Counter[str]()
    for function, number in zip(manifest.sites["function"].tolist(), executed.tolist(), strict=True):
        found[manifest.function_name(function)] += number
    return +found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row an image; 1 if one differs."""
    parser = argparse.ArgumentParser(
        prog="poe live", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="real images; all of them without")
    names = parser.parse_args(arguments).names
    failed = 0
    for subject in SUBJECTS:
        if names and subject.image not in names:
            continue
        title = f"{subject.image:18} {subject.on[:60]:60} {subject.probes:12} {subject.append[-6:]:6}"
        if shutil.which(shlex.split(subject.on)[0]) is None:
            print(f"{title} not run: no QEMU")
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = beside(real_image(subject.image), subject, Path(folder))
        if found is None:
            print(f"{title} not run: its QEMU has no plugins")
            continue
        failed |= bool(found.difference)
        text = found.difference or "alike"
        print(f"{title} {len(found.ours):6} functions, {sum(found.ours.values()):10} hits: {text}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
