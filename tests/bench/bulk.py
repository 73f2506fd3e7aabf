"""Rewriting in bulk: every instruction of a program with a breakpoint, and with a jump to code that counts by itself.

Whole commands, from the start of Python to the file that is written, beside objdump, which decodes the same code and
prints it. Seconds are of user and system CPU; the runs are interleaved and the medians compared. What a row has last is
how many times as long jumps take for the same instructions, those that cannot be jumps included.

Programs that this machine has not are left out: `poe images` downloads Debian's.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from tests.boundaries import OBJDUMP
from tests.images import CACHE

REPEATS: Final = 3
PROGRAMS: Final = (
    *(CACHE / f"busybox-{machine}" / "image.elf" for machine in ("amd64", "arm64", "riscv64")),
    Path("/usr/bin/gdb-multiarch"),
)
WAYS: Final = {"trap": (), "jump": ("--standalone",)}
LAYOUT: Final = "{:14} {:>6}  {:>7}  " + "{:>9} {:>6} {:>7} {:>6}  " * len(WAYS) + "{:>6}"


def cpu_seconds(command: Sequence[str]) -> float:
    """User and system CPU of a command that must succeed."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise AssertionError(f"{command}: status {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def row(path: Path, folder: Path) -> list[str]:
    """The cells of one program."""
    image = open_image(path)
    rewrite, files = str(Path(sys.executable).with_name("kinst-rewrite")), {way: folder / way for way in WAYS}
    commands: dict[str, Sequence[str]] = {"objdump": (OBJDUMP[image.facts.name], "-d", str(path))}
    for way, options in WAYS.items():
        commands[way] = (rewrite, str(path), "-q", "--probe", "kinst:::", *options, "-o", str(files[way]))
    rounds = [{way: cpu_seconds(command) for way, command in commands.items()} for _ in range(REPEATS)]
    spent = {way: statistics.median(one[way] for one in rounds) for way in commands}
    name = path.parent.name if path.is_relative_to(CACHE) else path.name
    cells = [name, f"{len(image.data) / 1e6:.1f}", f"{spent['objdump']:.1f}"]
    for way, file in files.items():
        manifest = find_manifest(open_image(file))
        assert manifest is not None
        sites, size = len(manifest.sites), file.stat().st_size / len(image.data)
        cells += [f"{sites:,}", f"{spent[way]:.1f}", f"{sites / spent[way]:,.0f}", f"{size:.1f}"]
    return [*cells, f"{spent['jump'] / spent['trap']:.2f}"]


def main() -> None:
    """Print a row a program."""
    print()
    print("every instruction of a program patched: CPU seconds of the command, sites a second, and how many times as")
    print("large the file is; with breakpoints, and with jumps to counters (--standalone). objdump -d beside them.")
    columns = [f"{way}{what}" for way in WAYS for what in (" sites", "", " a sec", " size")]
    print(LAYOUT.format("program", "MB", "objdump", *columns, "ratio"))
    for path in filter(Path.exists, PROGRAMS):
        with tempfile.TemporaryDirectory() as folder:
            print(LAYOUT.format(*row(path, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
