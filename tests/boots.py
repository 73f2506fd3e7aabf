"""Firmware of boards that ship up to its prompt (`board_boots`); OpenSBI, U-Boot and Linux in one run (`stage_boots`);
modules of Debian's kernels, probed as they load (`module_boots`); and Debian's Linux with Debian's busybox, from the
first instruction through twenty programs to the reset.

    python -m tests.boots [NAME...]        (`poe boots`)

Downloads what is missing (kernels of 600 MB each, for amd64, arm64 and riscv64, and the newest as they are installed,
one for real time and one with pages of 16 KiB among them), and prints a row a kernel: seconds of
CPU of the plain run, of QEMU's, with the entries of the 100 functions that are called most counted, and with those of
all functions; how often they were entered; and what is not alike. A console must be the plain one's, and what the
programs print must be what they print under QEMU. Then kernels of the three machines under `kinst-run --on`: see
`tests.boots_live`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests import board_boots, boots_live, module_boots, stage_boots
from tests.image_list import INSTALLED
from tests.images import real_image
from tests.linux_programs import PROGRAMS, START, initial_file_system, lines_of, of_programs, qemu, qemu_program

NAMES: Final = (
    *(*board_boots.BOOTS, stage_boots.NAME, *module_boots.NAMES),
    *("linux-amd64", "linux-arm64", "linux-riscv64", *INSTALLED),
)
_HOT: Final = 100
_BOUND: Final = 900  # seconds a run
_JOBS: Final = 2
_INIT: Final = f"{START}{PROGRAMS}reboot -f\n"
# Without the time stamp counter, which is the host's, the kernel for amd64 does the same in every run.
_APPEND: Final = {
    "amd64": "console=ttyS0 noapic nolapic acpi=off pci=off reboot=k clearcpuid=tsc,tsc_deadline_timer",
    "arm64": "console=ttyAMA0",
    "riscv64": "console=ttyS0",
}
_ON_QEMU: Final = {  # several CPUs take what our plain run does without
    "amd64": "console=ttyS0 panic=-1",
    "arm64": "console=ttyAMA0 panic=-1",
    "riscv64": "console=ttyS0 panic=-1",
}
_CPU_16K: Final = "cortex-a76"  # QEMU's A57 has no pages of 16 KiB
_PROGRAM: Final = '{} {{ @[probefunc] = count(); }} END {{ printa("%s %@d\\n", @); }}'
_COLUMNS: Final = ("kernel", "plain", "QEMU", "plain/", "100 hot", "all", "hot calls", "all calls", "")
_LAYOUT: Final = "{:18} {:>6} {:>6} {:>6}  {:>7} {:>7} {:>12} {:>12}  {}"


@dataclass(frozen=True, slots=True)
class Boot:
    """One run: what it printed without times, entries by function, seconds of CPU, and what went wrong."""

    console: tuple[str, ...]
    entries: Counter[str]
    seconds: float
    error: str


class Kernel:
    """A kernel, its initial file system, and a folder for what its runs write."""

    def __init__(self, name: str, folder: Path) -> None:
        self.path, self._folder, self._machine = real_image(name), folder, name.rpartition("-")[2]
        self._initrd = folder / "initrd.cpio"
        self._initrd.write_bytes(initial_file_system(self._machine, _INIT))

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
        """A run of QEMU's."""
        words = ("-initrd", str(self._initrd), "-append", _APPEND[self._machine])
        cpu = ("-cpu", _CPU_16K) if "16k" in self.path.parent.name else ()
        return self._run(qemu(self._machine, self.path, self._folder, *words, *cpu))

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
            lines = lines_of(console.read())
            why = f"exit code {process.returncode}: {errors.read().decode()[-500:]}" if status else ""
        return Boot(lines, Counter(), spent.ru_utime, why)


def row(name: str) -> tuple[str, bool]:
    """Boot a kernel four times; its row of the table, and whether all is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(name, Path(folder))
        plain, all_counted = kernel.traced(), kernel.traced(_PROGRAM.format("fbt:::entry"))
        hot = [function for function, _ in all_counted.entries.most_common(_HOT)]
        hot_counted = kernel.traced(_PROGRAM.format(",".join(f"fbt::{function}:entry" for function in hot)))
        beside = kernel.under_qemu() if shutil.which(qemu_program(name.rpartition("-")[2])) else None
    wrong = [*_wrong(plain, all_counted, hot_counted, beside)]
    theirs = (f"{beside.seconds:.1f}", f"{plain.seconds / beside.seconds:.1f}x") if beside else ("-", "-")
    times = (f"{one.seconds:.1f}" for one in (hot_counted, all_counted))
    counts = (f"{hot_counted.entries.total():,}", f"{all_counted.entries.total():,}")
    cells = (name, f"{plain.seconds:.1f}", *theirs, *times, *counts, "; ".join(wrong) or "as it should be")
    return _LAYOUT.format(*cells), not wrong


def _wrong(plain: Boot, all_counted: Boot, hot_counted: Boot, beside: Boot | None) -> Iterator[str]:
    for way, boot in (("plain", plain), ("all", all_counted), ("hot", hot_counted), ("QEMU", beside)):
        if boot is None:
            continue
        if boot.error:
            yield f"{way}: {boot.error}"
        elif of_programs(boot.console)[-1:] != ("end",):
            yield f"{way}: no end of its programs"
        elif of_programs(boot.console) != of_programs(plain.console):
            yield f"{way}: its programs print something else"
        elif boot is not beside and Counter(boot.console) != Counter(plain.console):
            yield f"{way}: the kernel prints something else"


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="poe boots", description="Boot Linux kernels into user space and back.")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"default: {' '.join(NAMES)}")
    names = parser.parse_args().names
    boards = [name for name in names if name in board_boots.BOOTS]
    has_stages = stage_boots.NAME in names
    modules = [name for name in names if name in module_boots.NAMES]
    names = [name for name in names if name not in (*boards, stage_boots.NAME, *modules)]
    print(board_boots.LAYOUT.format("board", "lines", "all calls", ""), flush=True)
    rows = [board_boots.row(name) for name in boards]
    for text, _ in rows:
        print(text, flush=True)
    if has_stages:
        print(stage_boots.LAYOUT.format(*stage_boots.COLUMNS), flush=True)
        rows.append(stage_boots.row())
        print(rows[-1][0], flush=True)
    print(module_boots.LAYOUT.format(*module_boots.COLUMNS), flush=True)
    for name in modules:
        rows.append(module_boots.row(name))
        print(rows[-1][0], flush=True)
    print("seconds of CPU; times that functions were entered")
    print(_LAYOUT.format(*_COLUMNS), flush=True)
    with ThreadPoolExecutor(_JOBS) as pool:
        is_right = all(is_well for _, is_well in rows)
        for text, is_well in pool.map(row, names):
            print(text, flush=True)
            is_right &= is_well
    return 0 if is_right & _live(names) else 1


def _live(names: Sequence[str]) -> bool:
    """Those under QEMU, one after the other: each may have several CPUs."""
    print("under QEMU, by kinst-run --on: user seconds; functions and their entries; system calls by fbt probes")
    print(boots_live.LAYOUT.format(*boots_live.COLUMNS), flush=True)
    is_right = True
    for name in names:
        machine = name.rpartition("-")[2]
        if name not in boots_live.NAMES or shutil.which(qemu_program(machine)) is None:
            continue
        for cpus in boots_live.CPUS:
            text, is_well = boots_live.row(name, cpus, _ON_QEMU[machine], _INIT)
            print(text, flush=True)
            is_right &= is_well
    return is_right


if __name__ == "__main__":
    sys.exit(main())
