"""Debian's kernels load modules as they are, use them and unload them, and all their functions are probed as they load.

`poe boots modules-linux-amd64` prints a row: how many functions of which modules were entered, how often, and what is
not as it should be. The console must be the plain one's, and each function must have returned as often as it was
entered, but for those that never return or that are left by what cannot be probed, which are named.
"""

import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.images import modules_of, real_image
from tests.linux_programs import START, initial_file_system, lines_of
from tests.writers.cpio import FILE, Entry

PREFIX: Final = "modules-"
NAMES: Final = tuple(
    PREFIX + name for name in ("linux-amd64", "linux-arm64", "linux-riscv64", "linux-6.12-amd64", "linux-6.12-arm64")
)
LAYOUT: Final = "{:26} {:>8} {:>10} {:>12}  {}"
COLUMNS: Final = ("modules", "modules", "functions", "entries", "")
_MODULES: Final = ("configfs", "null_blk", "brd", "loop", "nbd")  # each after those that it needs
# Without the time stamp counter, which is the host's, the kernel does the same in every run.
_APPEND: Final = {"amd64": "console=ttyS0 noapic nolapic acpi=off pci=off reboot=k clearcpuid=tsc,tsc_deadline_timer"}
_BOUND: Final = 900  # seconds a run
_PROGRAM: Final = (
    "{entries} {{ @in[probemod, probefunc] = count(); }} {returns} {{ @out[probemod, probefunc] = count(); }} "
    'END {{ printa("in %s %s %@d\\n", @in); printa("out %s %s %@d\\n", @out); }}'
)
_USE: Final = """
for turn in 1 2
do
{insmod}mknod /dev/ram0 b 1 0; echo written | dd of=/dev/ram0 bs=4096 count=4 conv=sync; dd if=/dev/ram0 bs=8 count=1
{rmmod}done
reboot -f
"""


@dataclass(frozen=True, slots=True)
class Booted:
    """What a run printed, without times; entries and returns by module and function; what went wrong."""

    lines: tuple[str, ...]
    entries: Counter[tuple[str, str]]
    returns: Counter[tuple[str, str]]
    error: str


class Kernel:
    """A kernel, its modules, and a folder for what runs need."""

    def __init__(self, name: str, folder: Path) -> None:
        self._path, self._folder, machine = real_image(name), folder, name.rpartition("-")[2]
        self._append = ("--append", _APPEND[machine]) if machine in _APPEND else ()
        found = modules_of(name, "|".join(_MODULES))
        self.modules = tuple(one for one in _MODULES if one in found)
        rmmod = "".join(f"rmmod {one}\n" for one in reversed(self.modules))
        insmod = "".join(f"insmod /{one}.ko\n" for one in self.modules)
        entries = [Entry(f"{one}.ko", FILE, found[one]) for one in self.modules]
        init = START + "mount -t devtmpfs dev /dev\n" + _USE.format(insmod=insmod, rmmod=rmmod)
        (folder / "initrd").write_bytes(initial_file_system(machine, init, entries))

    def run(self, *programs: str) -> Booted:
        """From the first instruction to the reset."""
        output, console = self._folder / "output", self._folder / "console"
        output.write_text("")
        words = [word for program in programs for word in ("-n", program)]
        options = (
            "-q",
            "-Z",
            "--clock",
            "icount",
            "--memory",
            "256M",
            "-o",
            str(output),
            "--console",
            str(console),
            *self._append,
        )
        command = ["timeout", str(_BOUND), "kinst-run", *options, "--initrd", str(self._folder / "initrd"), *words]
        done = subprocess.run([*command, str(self._path)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        rows = [line.split() for line in output.read_text().splitlines() if line]
        entries, returns = (
            Counter({(module, function): int(count) for way, module, function, count in rows if way == wanted})
            for wanted in ("in", "out")
        )
        error = f"exit code {done.returncode}: {done.stderr.decode()[-500:]}" if done.returncode else ""
        return Booted(lines_of(console.read_bytes()), entries, returns, error)


def row(name: str) -> tuple[str, bool]:
    """Boot a kernel plain and with probes; its row of the table, and whether all is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(name.removeprefix(PREFIX), Path(folder))
        ends = (",".join(f"fbt:{one}::{end}" for one in kernel.modules) for end in ("entry", "return"))
        plain, probed = (
            kernel.run(),
            kernel.run(_PROGRAM.format(**dict(zip(("entries", "returns"), ends, strict=True)))),
        )
    wrong = [f"{way}: {boot.error}" for way, boot in (("plain", plain), ("probed", probed)) if boot.error]
    if Counter(plain.lines) != Counter(probed.lines):
        wrong.append("the console is another")
    silent = set(kernel.modules) - {module for module, _ in probed.entries}
    wrong += [f"nothing of {module} was entered" for module in sorted(silent)]
    unlike = sorted(
        f"{module}`{function}: {probed.entries[module, function]} in, {probed.returns[module, function]} out"
        for module, function in probed.entries | probed.returns
        if probed.entries[module, function] != probed.returns[module, function]
    )
    wrong += unlike
    counts = (str(len(kernel.modules)), f"{len(probed.entries):,}", f"{probed.entries.total():,}")
    return LAYOUT.format(name, *counts, "; ".join(wrong) or "as it should be"), not wrong
