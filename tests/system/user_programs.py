"""The program in `user_program/`, built for a machine, as all that runs in user space of Linux: here and under QEMU.

    python -m tests.system.user_programs MACHINE [--cpus N] [--program D] [--part PART]...

prints the lines that are not alike.
"""

import argparse
import difflib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.images import real_image
from tests.linux_programs import MARKER, initial_file_system, qemu
from tests.writers.cpio import FILE, Entry

COMPILERS: Final = {"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}
# Every function of the kernel, and what system calls are given and give back.
EVERY_FUNCTION: Final = "fbt:::entry { @ = count(); }"
EVERY_CALL: Final = (
    "syscall:::entry { @[probefunc, arg0] = count(); } syscall:::return { @[probefunc, arg1] = count(); }"
)

_SOURCES: Final = Path(__file__).with_name("user_program")
_FLAGS: Final = ("-O1", "-static", "-pthread", "-Wno-infinite-recursion", "-Wno-stringop-overread")
# The kernel is silent, since it would write between the lines of the program. Measurements of the time that go wrong on
# a busy host stop QEMU's kernel.
_APPEND: Final = {
    "amd64": "console=ttyS0 pci=off reboot=k loglevel=1 tsc=reliable no_timer_check",
    "arm64": "console=ttyAMA0 loglevel=1",
    "riscv64": "console=ttyS0 loglevel=1",
}
# The CPU that Unicorn has: without AVX, performance counters, and what came to RISC-V later.
_CPUS: Final = {
    "amd64": ("-cpu", "Haswell,-avx,-avx2,-f16c,-fma,-rdrand"),
    "arm64": ("-cpu", "cortex-a57,pmu=off"),
    "riscv64": ("-cpu", "rv64,zba=off,zbb=off,zbc=off,zbs=off,h=off,sstc=off"),
}
_INIT: Final = (
    f"#!/bin/sh\n/bin/busybox mount -t proc proc /proc\necho '{MARKER}'\n/bin/program {{}}\n/bin/busybox reboot -f\n"
)
_BOUND: Final = "1800"  # seconds a run


@dataclass(slots=True)
class UserProgram:
    """The program on a machine, with the parts that run (all if none are named)."""

    machine: str
    folder: Path
    parts: Sequence[str] = ()
    _initrd: Path = field(init=False)

    def __post_init__(self) -> None:
        built = self.folder / "program"
        sources = sorted(str(path) for path in _SOURCES.glob("*.c"))
        subprocess.run([COMPILERS[self.machine], *_FLAGS, "-o", built, *sources, "-lm"], check=True)
        entries = (Entry("bin/program", FILE, built.read_bytes()),)
        self._initrd = self.folder / "initrd.cpio"
        self._initrd.write_bytes(initial_file_system(self.machine, _INIT.format(" ".join(self.parts)), entries))

    def here(self, cpus: int, program: str = "") -> tuple[str, ...]:
        """What it prints in a run of ours, with a D program or without."""
        output = self.folder / "output"
        words = ("-q", "-o", str(output), "-n", program) if program else ()
        options = ("--clock", "icount", "--memory", "256M", "--cpus", str(cpus), "--append", _APPEND[self.machine])
        kernel = real_image(f"linux-{self.machine}")
        return self._printed(["kinst-run", *options, *words, "--initrd", str(self._initrd), str(kernel)])

    def under_qemu(self, cpus: int) -> tuple[str, ...]:
        """What it prints under QEMU."""
        words = ("-initrd", str(self._initrd), "-append", _APPEND[self.machine], "-smp", str(cpus))
        kernel = real_image(f"linux-{self.machine}")
        return self._printed([*qemu(self.machine, kernel, self.folder, *words), *_CPUS[self.machine]])

    def _printed(self, command: Sequence[str]) -> tuple[str, ...]:
        command = ["timeout", _BOUND, *command]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        text = done.stdout.decode(errors="replace").replace("\r", "")
        lines = tuple(line for line in text.splitlines() if line.startswith("= "))
        return lines if not done.returncode else (*lines, f"exit code {done.returncode}: {done.stderr.decode()[-500:]}")


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.user_programs")
    parser.add_argument("machine", choices=COMPILERS)
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--program", default="")
    parser.add_argument("--part", action="append", default=[])
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = UserProgram(words.machine, Path(folder), words.part)
        theirs, ours = program.under_qemu(words.cpus), program.here(words.cpus, words.program)
    differences = [*difflib.unified_diff(theirs, ours, "QEMU", "here", lineterm="", n=1)]
    print(*differences, f"{len(theirs)} lines, {len(ours)} here", sep="\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
