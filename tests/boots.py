"""Debian's Linux kernels with Debian's busybox, from the first instruction through twenty programs to the reset.

    python -m tests.boots [NAME...]        (`poe boots`)

Downloads what is missing (kernels of 600 MB each, for amd64, arm64 and riscv64), and prints a row a kernel: seconds of
CPU of the plain run, of QEMU's, with the entries of the 100 functions that are called most counted, and with those of
all functions; how often they were entered; and what is not alike. A console must be the plain one's, and what the
programs print must be what they print under QEMU.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_image
from tests.images import real_image
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

NAMES: Final = ("linux-amd64", "linux-arm64", "linux-riscv64")
_HOT: Final = 100
_BOUND: Final = 900  # seconds a run
_JOBS: Final = 2
_MARKER: Final = "kinst: user space"
_INIT: Final = f"""#!/bin/sh
echo '{_MARKER}'
/bin/busybox --install -s /bin
mount -t proc proc /proc
uname -sm
ls / | sort -r | tr '\\n' ' '; echo
seq 1 200 | awk '{{ sum += $1 }} END {{ print "sum", sum }}'
head -c 65536 /dev/zero | gzip -c | gunzip -c | md5sum
i=0; while [ $i -lt 20 ]; do i=$((i + 1)); (true) & done; wait; echo forked $i
echo hello > /tmp/file; cat /tmp/file; sed s/hello/goodbye/ /tmp/file
cp /tmp/file /tmp/copy; cmp /tmp/file /tmp/copy && wc -c < /tmp/copy; rm /tmp/copy
find /bin -name 'ls*' | xargs -n 1 basename | sort
printf '%s\\n' b a c | sort | uniq -c | cut -c 7-
expr 6 '*' 7; dd if=/dev/zero bs=1024 count=64 2> /dev/null | wc -c
echo YWJj | base64 -d; echo; date -u -d @0 +%Y; factor 1001
sleep 1; grep -c processor /proc/cpuinfo; test -d /proc/self && echo end
reboot -f
"""
# Without the time stamp counter, which is the host's, the kernel for amd64 does the same in every run.
_APPEND: Final = {
    "amd64": "console=ttyS0 noapic nolapic acpi=off pci=off reboot=k clearcpuid=tsc,tsc_deadline_timer",
    "arm64": "console=ttyAMA0",
    "riscv64": "console=ttyS0",
}
_QEMU: Final = {
    "amd64": ("qemu-system-x86_64", "-M", "pc", "-cpu", "qemu64"),
    "arm64": ("qemu-system-aarch64", "-M", "virt,gic-version=2", "-cpu", "cortex-a57"),
    "riscv64": ("qemu-system-riscv64", "-M", "virt"),
}
_PROGRAM: Final = '{} {{ @[probefunc] = count(); }} END {{ printa("%s %@d\\n", @); }}'
_COLUMNS: Final = ("kernel", "plain", "QEMU", "plain/", "100 hot", "all", "hot calls", "all calls", "")
_LAYOUT: Final = "{:18} {:>6} {:>6} {:>6}  {:>7} {:>7} {:>12} {:>12}  {}"
_CHANGING: Final = r"(?m)^\[ *\d+\.\d+\] |audit\([\d.]+:\d+\)|setting system clock to .*|sched_clock: .*"


@dataclass(frozen=True, slots=True)
class Boot:
    """One run: what it printed without times, entries by function, seconds of CPU, and what went wrong."""

    console: tuple[str, ...]
    entries: Counter[str]
    seconds: float
    error: str

    @property
    def programs(self) -> tuple[str, ...]:
        """The lines of user space, which are in the same order everywhere; the kernel's may come between."""
        if _MARKER not in self.console:
            return ()
        lines = self.console[self.console.index(_MARKER) :]
        return tuple(line for line in lines if not re.match(r"\w+: |.*reboot:", line))


def initial_file_system(machine: str) -> bytes:
    """busybox under its own name and `sh`, some folders and devices, and the script that runs first."""
    busybox = real_image(f"busybox-{machine}").read_bytes()
    folders = (Entry(name, DIRECTORY) for name in ("bin", "dev", "proc", "tmp"))
    numbers = {"console": (5, 1), "null": (1, 3), "zero": (1, 5)}
    devices = (Entry(f"dev/{name}", CHARACTERS, device=number) for name, number in numbers.items())
    programs = (Entry("bin/busybox", FILE, busybox), Entry("bin/sh", LINK, b"busybox"))
    return archive([*folders, *devices, *programs, Entry("init", FILE, _INIT.encode())])


def flat(path: Path, into: Path) -> None:
    """An ELF kernel as boot loaders have it: memory from its first byte on."""
    image = open_image(path)
    segments = [one for one in image.segments if one.kind == PT_LOAD and one.file_size]
    first = min(one.load_address for one in segments)
    with into.open("wb") as file:
        for segment in segments:
            file.seek(segment.load_address - first)
            file.write(image.data[segment.offset : segment.offset + segment.file_size].data)


class Kernel:
    """A kernel, its initial file system, and a folder for what its runs write."""

    def __init__(self, name: str, folder: Path) -> None:
        self.path, self._folder, self._machine = real_image(name), folder, name.rpartition("-")[2]
        self._initrd = folder / "initrd.cpio"
        self._initrd.write_bytes(initial_file_system(self._machine))

    def traced(self, program: str = "") -> Boot:
        """A run of ours, with a D program or without."""
        output = self._folder / "output"
        output.write_text("")
        options = ("--clock", "icount", "--memory", "256M", "--append", _APPEND[self._machine])
        words = ("-q", "-o", str(output), "-n", program) if program else ()
        boot = self._run(["kinst-run", *options, *words, "--initrd", str(self._initrd), str(self.path)])
        counts = re.findall(r"(?m)^(\S+) (\d+)$", output.read_text())
        return replace(boot, entries=Counter({name: int(count) for name, count in counts}))

    def under_qemu(self) -> Boot:
        """A run of QEMU's, which takes only amd64's kernel as an ELF file."""
        kernel = self.path
        if self._machine != "amd64":
            kernel = self._folder / "Image"
            flat(self.path, kernel)
        machine = (*_QEMU[self._machine], "-m", "256M", "-nographic", "-no-reboot")
        return self._run(
            [*machine, "-kernel", str(kernel), "-initrd", str(self._initrd), "-append", _APPEND[self._machine]]
        )

    def _run(self, command: list[str]) -> Boot:
        """Seconds of CPU are this process' alone, whatever runs beside it."""
        with tempfile.TemporaryFile() as console, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                ["timeout", str(_BOUND), *command], stdin=subprocess.DEVNULL, stdout=console, stderr=errors
            )
            _, status, spent = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            console.seek(0)
            errors.seek(0)
            text = re.sub(_CHANGING, "", console.read().decode(errors="replace").replace("\r", ""))
            why = f"exit code {process.returncode}: {errors.read().decode()[-500:]}" if status else ""
        return Boot(tuple(text.splitlines()), Counter(), spent.ru_utime, why)


def row(name: str) -> tuple[str, bool]:
    """Boot a kernel four times; its row of the table, and whether all is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(name, Path(folder))
        plain, all_counted = kernel.traced(), kernel.traced(_PROGRAM.format("fbt:::entry"))
        hot = [function for function, _ in all_counted.entries.most_common(_HOT)]
        hot_counted = kernel.traced(_PROGRAM.format(",".join(f"fbt::{function}:entry" for function in hot)))
        qemu = kernel.under_qemu() if shutil.which(_QEMU[name.rpartition("-")[2]][0]) else None
    wrong = [*_wrong(plain, all_counted, hot_counted, qemu)]
    theirs = (f"{qemu.seconds:.1f}", f"{plain.seconds / qemu.seconds:.1f}x") if qemu else ("-", "-")
    times = (f"{one.seconds:.1f}" for one in (hot_counted, all_counted))
    counts = (f"{hot_counted.entries.total():,}", f"{all_counted.entries.total():,}")
    cells = (name, f"{plain.seconds:.1f}", *theirs, *times, *counts, "; ".join(wrong) or "as it should be")
    return _LAYOUT.format(*cells), not wrong


def _wrong(plain: Boot, all_counted: Boot, hot_counted: Boot, qemu: Boot | None) -> Iterator[str]:
    for way, boot in (("plain", plain), ("all", all_counted), ("hot", hot_counted), ("QEMU", qemu)):
        if boot is None:
            continue
        if boot.error:
            yield f"{way}: {boot.error}"
        elif boot.programs[-1:] != ("end",):
            yield f"{way}: no end of its programs"
        elif boot.programs != plain.programs:
            yield f"{way}: its programs print something else"
        elif boot is not qemu and Counter(boot.console) != Counter(plain.console):
            yield f"{way}: the kernel prints something else"


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="poe boots", description="Boot Linux kernels into user space and back.")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"default: {' '.join(NAMES)}")
    names = parser.parse_args().names
    print("seconds of CPU; times that functions were entered")
    print(
        _LAYOUT.format("kernel", "plain", "QEMU", "plain/", "100 hot", "all", "hot calls", "all calls", ""), flush=True
    )
    with ThreadPoolExecutor(_JOBS) as pool:
        is_right = True
        for text, is_well in pool.map(row, names):
            print(text, flush=True)
            is_right &= is_well
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
