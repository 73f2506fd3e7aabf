"""Linux under QEMU by `kinst-run --on`, from the first instruction through twenty programs to the reset: with the
entries of all functions counted, by an image that is made anew and by the one that was kept, and with what system calls
take by program."""

import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest.mock import patch

from tests.images import real_image
from tests.linux_programs import initial_file_system, lines_of, of_programs, qemu, qemu_board

NAMES: Final = ("linux-amd64", "linux-arm64", "linux-riscv64")
CPUS: Final = (1, 4)
PROBES: Final = "fbt:::entry"
_BOUND: Final = 600  # seconds a run
_COUNTED: Final = PROBES + ' { @[probefunc] = count(); } END { printa("%s %@d\\n", @); trunc(@); }'
_COUNTS: Final = "@n[execname] = count();"
_PRINTED: Final = ' END { printa("%s %@d\\n", @n); trunc(@n); printa(@q); trunc(@q); }'
_LATENCY: Final = (
    "syscall:::entry { self->t = timestamp; } "
    f"syscall:::return /self->t/ {{ @q[execname] = quantize(timestamp - self->t); {_COUNTS} self->t = 0; }}" + _PRINTED
)
_CALLERS: Final = ("init", "find", "dd", "sort")  # that are long enough in each boot
COLUMNS: Final = (
    *("kernel", "CPUs", "QEMU", "anew", "anew/", "kept", "kept/", "calls", "calls/"),
    *("functions", "entries", "calls", "drops", ""),
)
LAYOUT: Final = "{:14} {:>4} {:>6} {:>6} {:>5} {:>6} {:>5} {:>6} {:>6} {:>10} {:>12} {:>7} {:>6}  {}"


@dataclass(frozen=True, slots=True)
class _Run:
    """What it printed, counts by name, drops, seconds of CPU, and what went wrong."""

    console: tuple[str, ...]
    counts: Counter[str]
    drops: int
    seconds: float
    error: str


def row(name: str, cpus: int, append: str, init: str) -> tuple[str, bool]:
    """Boot a kernel four times on so many CPUs; its row of the table, and whether all is as it should be. Seconds are
    those of everything that runs, QEMU and Python."""
    machine, path = name.removeprefix("linux-"), real_image(name)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        initrd = folder / "initrd.cpio"
        initrd.write_bytes(initial_file_system(machine, init))
        smp, both = ("-smp", str(cpus)), ("--initrd", str(initrd), "--append", append)
        on = ("kinst-run", "-q", "--on", " ".join((*qemu_board(machine), "-m", "256M", *smp)), *both)
        plain = _run(qemu(machine, path, folder, *smp, "-initrd", str(initrd), "-append", append), folder)
        with patch.dict(os.environ, XDG_CACHE_HOME=text):  # where no image is kept yet
            anew, counted = (_run([*on, "-n", _COUNTED, str(path)], folder) for _ in range(2))
            timed = _run([*on, "-n", _LATENCY, str(path)], folder)
    wrong = [*_wrong(plain, anew, counted, timed)]
    times = [f"{plain.seconds:.1f}"]
    for run in (anew, counted, timed):
        times += [f"{run.seconds:.1f}", f"{run.seconds / plain.seconds:.1f}x"]
    counts = (f"{len(counted.counts):,}", f"{counted.counts.total():,}", f"{timed.counts.total():,}", timed.drops)
    return LAYOUT.format(name, cpus, *times, *counts, "; ".join(wrong) or "as it should be"), not wrong


def _wrong(plain: _Run, anew: _Run, counted: _Run, timed: _Run) -> Iterator[str]:
    for way, run in (("QEMU", plain), ("anew", anew), ("kept", counted), ("calls", timed)):
        if run.error:
            yield f"{way}: {run.error}"
        elif of_programs(run.console)[-1:] != ("end",):
            yield f"{way}: no end of its programs"
        elif of_programs(run.console) != of_programs(plain.console):
            yield f"{way}: its programs print something else"
    if missing := [name for name in _CALLERS if not timed.counts[name]]:
        yield f"calls: none by {', '.join(missing)}"


def _run(command: Sequence[str], folder: Path) -> _Run:
    """Run it. The console of ours is in a file, and D's output is what it prints; QEMU prints its console."""
    console, is_ours = folder / "console", command[0] == "kinst-run"
    words = [*command, "--console", str(console)] if is_ours else [*command]
    with (folder / "output").open("w+b") as output, (folder / "errors").open("w+b") as errors:
        process = subprocess.Popen(
            ["timeout", str(_BOUND), *words], stdin=subprocess.DEVNULL, stdout=output, stderr=errors
        )
        _, status, spent = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    printed, said = (folder / "output").read_text(errors="replace"), (folder / "errors").read_text(errors="replace")
    counts = Counter({name: int(count) for name, count in re.findall(r"(?m)^(\S+) (\d+)$", printed)} if is_ours else {})
    drops = sum(int(count) for count in re.findall(r"(?m)^dtrace: (\d+) ", said))
    lines = lines_of(console.read_bytes() if is_ours and console.exists() else printed.encode())
    error = f"exit code {process.returncode}: {said[-300:]}" if status else ""
    return _Run(lines, counts, drops, spent.ru_utime, error)
