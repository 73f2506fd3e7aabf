"""Linux kernels in the cache, booted to their root-fs panic: plain, and with every function's entry and return.

Run as ``python -m tests.kernels [NAME...]`` (``poe kernels``); a row a kernel, and what is not as it should be. The
console must be the plain one's but for times; functions whose entries and returns differ are named (KINST_ALL=1: all):
those that are on a stack at the end, and those that never return.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.images import at_hand, real_image

NAMES: Final = (
    "linux-amd64",
    "linux-arm64",
    "linux-riscv64",
    "linux-6.12-amd64",
    "linux-6.12-arm64",
    "linux-7-riscv64",
)
# Without the time stamp counter, which is the host's, the kernel does the same in every run.
_COMMAND_LINES: Final = {"amd64": "console=ttyS0 noapic nolapic acpi=off pci=off clearcpuid=tsc,tsc_deadline_timer"}
_PANIC: Final = "Kernel panic - not syncing: VFS: Unable to mount root fs"
_PROGRAM: Final = (
    "fbt:::entry { @in[probefunc] = count(); } fbt:::return { @out[probefunc] = count(); } "
    'END { printa("in %s %@d\\n", @in); printa("out %s %@d\\n", @out); }'
)
_CHANGING: Final = r"(?m)^\[ *\d+\.\d+\] |audit\([\d.]+:\d+\)|setting system clock to .*"
_FEW: Final = 12


@dataclass(frozen=True, slots=True)
class Boot:
    """One run: console lines, entries and returns by function, seconds of CPU, what kinst-run said if it failed."""

    console: Counter[str]
    entries: Counter[str]
    returns: Counter[str]
    seconds: float
    errors: str


def boot(name: str, program: str, folder: Path) -> Boot:
    """Run a kernel to its panic."""
    console, output = folder / "console", folder / "output"
    for path in (console, output):
        path.unlink(missing_ok=True)
    line = _COMMAND_LINES.get(name.rpartition("-")[2], "panic=-1")
    options = ("--clock", "icount", "--append", line, "--until", _PANIC, "--console", str(console), "-o", str(output))
    before = _spent()
    done = subprocess.run(
        ["kinst-run", *(("-q", "-n", program) if program else ()), *options, str(real_image(name))],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = re.sub(_CHANGING, "", console.read_text(errors="replace")).splitlines() if console.exists() else []
    # Threads print when they get to run: the order of their lines may be another.
    errors = done.stderr.strip() if done.returncode else ""
    return Boot(Counter(lines), _counts(output, "in"), _counts(output, "out"), _spent() - before, errors)


def _spent() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def _counts(output: Path, way: str) -> Counter[str]:
    text = output.read_text() if output.exists() else ""
    return Counter({name: int(count) for name, count in re.findall(rf"(?m)^{way} (\S+) (\d+)$", text)})


def proved(name: str, folder: Path) -> bool:
    """Boot a kernel twice and print what came of it."""
    plain, probed = boot(name, "", folder), boot(name, _PROGRAM, folder)
    gone, new = plain.console - probed.console, probed.console - plain.console
    unlike = sorted(one for one in probed.entries | probed.returns if probed.entries[one] != probed.returns[one])
    print(
        f"{name}: plain {plain.seconds:.0f} s of CPU, {plain.console.total()} lines; probed {probed.seconds:.0f} s, "
        f"{len(probed.entries):,} functions entered {probed.entries.total():,} times, {len(probed.returns):,} left "
        f"{probed.returns.total():,} times; {len(unlike):,} differ"
    )
    for function in unlike[: None if os.environ.get("KINST_ALL") else _FEW]:
        print(f"    {function}: {probed.entries[function]} in, {probed.returns[function]} out")
    for line in (*(f"plain only: {line}" for line in gone), *(f"probed only: {line}" for line in new)):
        print(f"    {line}")
    for errors in filter(None, (plain.errors, probed.errors)):
        print(f"    {errors}")
    sys.stdout.flush()
    return not (gone or new or plain.errors or probed.errors)


def main() -> int:
    """0 if all is as it should be."""
    parser = argparse.ArgumentParser(prog="poe kernels", description="Boot kernels with every function's probes.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: those in the cache")
    names = parser.parse_args().names or at_hand(*NAMES)
    with tempfile.TemporaryDirectory() as folder:
        results = [proved(name, Path(folder)) for name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
