"""A plain boot of Debian's Linux to its panic over the missing root, beside QEMU: seconds of user CPU, and their ratio.

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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image, open_image
from tests.images import CACHE

REPEATS: Final = 3
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
    "arm64": Rival("qemu-system-aarch64", ("-M", "virt", "-cpu", "cortex-a57"), "console=ttyAMA0 panic=-1"),
    "riscv64": Rival("qemu-system-riscv64", ("-M", "virt", "-cpu", _RISCV_CPU), "console=ttyS0 panic=-1"),
}


def kernel_for_qemu(machine: str, image: Image) -> bytes:
    """What QEMU reads fastest: for amd64 an ELF file without sections, else memory from its first byte on."""
    segments = [segment for segment in image.segments if segment.kind == PT_LOAD]
    if machine == "amd64":
        end = max(segment.offset + segment.file_size for segment in segments)
        content = bytearray(image.data[:end].data)
        struct.pack_into("<Q", content, 40, 0)  # e_shoff
        struct.pack_into("<HH", content, 60, 0, 0)  # e_shnum, e_shstrndx
        return bytes(content)
    start = min(segment.load_address for segment in segments)
    content = bytearray(max(segment.load_address + segment.file_size for segment in segments) - start)
    for segment in segments:
        at = segment.load_address - start
        content[at : at + segment.file_size] = image.data[segment.offset : segment.offset + segment.file_size].data
    return bytes(content)


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


def measured(machine: str, path: Path, folder: Path) -> tuple[float, float]:
    """Medians of our seconds and QEMU's."""
    rival, kernel = RIVALS[machine], folder / machine
    kernel.write_bytes(kernel_for_qemu(machine, open_image(path)))
    both = ("-m", _MEMORY, "-append", rival.command_line)
    theirs = (rival.program, *rival.board, *both, "-accel", "tcg,thread=single", "-nographic", "-no-reboot")
    run = str(Path(sys.executable).with_name("kinst-run"))
    options = ("--memory", _MEMORY, "--append", rival.command_line, "--until", PANIC)
    times = [
        (user_seconds((run, *options, str(path))), user_seconds((*theirs, "-kernel", str(kernel))))
        for _ in range(REPEATS)
    ]
    ours, qemus = (statistics.median(column) for column in zip(*times, strict=True))
    return ours, qemus


def main() -> None:
    """Print a row a machine."""
    print("seconds of user CPU of a Linux boot to the panic, beside QEMU")
    with tempfile.TemporaryDirectory() as folder:
        for machine, rival in RIVALS.items():
            path = CACHE / f"linux-{machine}" / "image.elf"
            if not path.exists() or shutil.which(rival.program) is None:
                print(f"{machine:8} needs {rival.program} and `poe images linux-{machine}`")
                continue
            ours, qemus = measured(machine, path, Path(folder))
            print(f"{machine:8} ours {ours:.2f} s, QEMU {qemus:.2f} s, {ours / qemus:.1f}x", flush=True)


if __name__ == "__main__":
    main()
