"""A boot of Debian's Linux to its panic over the missing root, beside QEMU: seconds of user CPU, and their ratios.

Plain, and with the entries of all functions counted: by breakpoints, where blocks begin, by the kernel itself where it
has room, and by a plugin of QEMU's (`tests/qemu_plugin`) where QEMU loads it.

Both translate code (QEMU with one thread), both are given the same kernel, memory and command line, and neither keeps
anything from one run to the next. The runs are interleaved and the medians compared. Start-up counts on both sides.
"""

import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.rewriting import Source, open_source
from kinst.rewriter.standalone.plan import plan_standalone
from kinst.rewriter.standalone.request import parse_request
from kinst.rewriter.writing.write import write_image
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import PlacementError
from kinst.targets.image import open_image
from kinst.targets.probe import parse_probe_name
from tests.images import CACHE
from tests.linux_programs import flat
from tests.qemu_plugin.plugin import counting_plugin

REPEATS: Final = 3
COUNTED: Final = "fbt:::entry { @[probefunc] = count(); }"
PANIC: Final = "Unable to mount root fs"
_MEMORY: Final = "512M"
_RISCV_CPU: Final = "rv64,h=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false"  # without what Unicorn's has not


@dataclass(frozen=True, slots=True)
class Rival:
    """QEMU's program and board for a machine, and what both guests are told."""

    program: str
    board: Sequence[str]
    command_line: str


RIVALS: Final = {
    "amd64": Rival(
        "qemu-system-x86_64", ("-M", "pc", "-cpu", "qemu64"), "console=ttyS0 noapic nolapic acpi=off pci=off panic=-1"
    ),
    "arm64": Rival(  # without a seed the kernel stays where it is linked, as on our board
        "qemu-system-aarch64", ("-M", "virt,dtb-randomness=off", "-cpu", "cortex-a57"), "console=ttyAMA0 panic=-1"
    ),
    "riscv64": Rival("qemu-system-riscv64", ("-M", "virt", "-cpu", _RISCV_CPU), "console=ttyS0 panic=-1"),
}


def kernel_for_qemu(machine: str, path: Path, into: Path) -> Path:
    """What QEMU reads fastest: for amd64 an ELF file without sections, else memory from its first byte on."""
    if machine != "amd64":
        return flat(path, into)
    image = open_image(path)
    end = max(segment.offset + segment.file_size for segment in image.segments if segment.kind == PT_LOAD)
    content = bytearray(image.data[:end].data)
    struct.pack_into("<Q", content, 40, 0)  # e_shoff
    struct.pack_into("<HH", content, 60, 0, 0)  # e_shnum, e_shstrndx
    into.write_bytes(content)
    return into


def user_seconds(command: Sequence[str]) -> float:
    """User CPU of a command that must succeed, and whose console must show the panic."""
    with tempfile.TemporaryFile() as console:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        console.seek(0)
        printed = console.read()
    if child.returncode or PANIC.encode() not in printed:
        raise AssertionError(f"{command}: status {child.returncode}, {printed[-500:]!r}")
    return usage.ru_utime


def ways(machine: str, path: Path, folder: Path) -> dict[str, Sequence[str]]:
    """The commands that boot a kernel, by name."""
    rival, run = RIVALS[machine], str(Path(sys.executable).with_name("kinst-run"))
    both = ("-m", _MEMORY, "-append", rival.command_line)
    options = ("--memory", _MEMORY, "--append", rival.command_line, "--until", PANIC)
    theirs = (rival.program, *rival.board, *both, "-accel", "tcg,thread=single", "-nographic", "-no-reboot", "-kernel")

    def kernel(image: Path) -> str:
        return str(kernel_for_qemu(machine, image, folder / f"{machine}-{image.parent.name}"))

    found: dict[str, Sequence[str]] = {
        "ours": (run, *options, str(path)),
        "QEMU": (*theirs, kernel(path)),
        "counted": (run, *options, "-q", "-n", COUNTED, str(path)),
        "block": (run, *options, "-q", "--method", "block", "-n", COUNTED, str(path)),
    }
    if (plugin := plugin_option(rival.program, path, folder)) is not None:
        found["plugin"] = (*theirs[:-1], "-plugin", plugin, *theirs[-1:], kernel(path))
    if (alone := standalone(path, folder)) is not None:
        found |= {"alone": (run, *options, "-q", str(alone)), "alone in QEMU": (*theirs, kernel(alone))}
    return found


def plugin_option(program: str, path: Path, folder: Path) -> str | None:
    """QEMU's argument for the plugin, which counts the entries of all functions; None if it cannot be loaded."""
    resolved = resolve(open_source(Source(path)).program, [parse_probe_name("fbt:::entry")])
    plugin = counting_plugin(program, manifest_of(resolved)[0].sites["address"], folder)
    return None if plugin is None else plugin.option


def standalone(path: Path, folder: Path) -> Path | None:
    """The kernel with the entries of its functions counted by itself, if it has room for that."""
    out = folder / "alone" / "vmlinux"
    out.parent.mkdir(exist_ok=True)
    opened = open_source(Source(path))
    request = parse_request("count", None, None, opened.image.facts)
    try:
        plan = plan_standalone(resolve(opened.program, [parse_probe_name("fbt:::entry")]), request)
    except PlacementError:
        return None
    write_image(plan, out)
    return out


def measured(machine: str, path: Path, folder: Path) -> dict[str, float]:
    """Medians of seconds, by way."""
    commands = ways(machine, path, folder)
    times = [{name: user_seconds(command) for name, command in commands.items()} for _ in range(REPEATS)]
    return {name: statistics.median(one[name] for one in times) for name in commands}


def row(machine: str, found: Mapping[str, float]) -> str:
    """What is printed of a machine."""
    ours, qemu = found["ours"], found["QEMU"]
    cells = [f"{machine:8} ours {ours:.2f} s, QEMU {qemu:.2f} s, {ours / qemu:.1f}x; counted {found['counted']:.2f} s"]
    cells += [f"{found['counted'] / ours:.1f}x ours", f"by blocks {found['block']:.2f} s, {found['block'] / ours:.1f}x"]
    if "plugin" in found:
        cells += [f"by QEMU's plugin {found['plugin']:.2f} s, {found['plugin'] / qemu:.1f}x QEMU"]
    if "alone" in found:
        alone, there = found["alone"], found["alone in QEMU"]
        cells += [
            f"standalone {alone:.2f} s, {alone / ours:.1f}x ours, in QEMU {there:.2f} s, {there / qemu:.1f}x QEMU"
        ]
    return ", ".join(cells)


def main() -> None:
    """Print a row a machine."""
    print(
        "seconds of user CPU of a Linux boot to the panic, beside QEMU; and with the entries of all functions counted,"
    )
    print("by breakpoints, where blocks begin, by a plugin of QEMU's and by the kernel itself")
    with tempfile.TemporaryDirectory() as folder:
        for machine, rival in RIVALS.items():
            path = CACHE / f"linux-{machine}" / "image.elf"
            if not path.exists() or shutil.which(rival.program) is None:
                print(f"{machine:8} needs {rival.program} and `poe images linux-{machine}`")
                continue
            print(row(machine, measured(machine, path, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
