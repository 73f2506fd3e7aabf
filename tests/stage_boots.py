"""OpenSBI, U-Boot and Linux of Debian for riscv64 in one run: each starts the next one, Linux runs programs and resets.

`poe boots opensbi-u-boot-linux` prints a row; `tests/system/test_stage_boots.py` runs it as a long test. Linux is in
memory as a file that U-Boot moves to where it runs (`booti`).
"""

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_to_run
from tests.images import real_image
from tests.linux_programs import PROGRAMS, START, initial_file_system, lines_of, of_programs

NAME: Final = "opensbi-u-boot-linux"
LAYOUT: Final = "{:22} {:>8} {:>12} {:>12} {:>12}  {}"
COLUMNS: Final = ("stages", "lines", "OpenSBI", "U-Boot", "Linux", "")
MODULES: Final = ("opensbi", "u-boot", "linux")
_PLACE: Final = 0x8400_0000
# A key ends U-Boot's countdown, in which each look at the clock is an exception.
_TYPED: Final = f"\nsetenv bootargs console=ttyS0\nbooti {_PLACE:#x} - ${{fdtcontroladdr}}\n"
_PROGRAM: Final = 'fbt:::entry { @[probemod] = count(); } END { printa("%s %@d\\n", @); }'
_BOUND: Final = 1500  # seconds a run
_INIT: Final = f"{START}{PROGRAMS}reboot -f\n"


@dataclass(frozen=True, slots=True)
class Booted:
    """What a run printed, without times; entries of functions by module; what went wrong."""

    lines: tuple[str, ...]
    entries: Counter[str]
    error: str


class Stages:
    """The three images, and a folder for what the runs need."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        linux = open_to_run(real_image("vmlinuz-riscv64"))
        (segment,) = (one for one in linux.segments if one.kind == PT_LOAD)
        content = linux.data[segment.offset : segment.offset + segment.file_size]
        (folder / "Image").write_bytes(content.tobytes())
        (folder / "initrd").write_bytes(initial_file_system("riscv64", _INIT))

    def run(self, *words: str) -> Booted:
        """From OpenSBI's first instruction to Linux' reset."""
        folder, output = self._folder, self._folder / "output"
        output.write_text("")
        loads = (
            *("--load", f"u-boot={real_image('u-boot-riscv64-smode')}"),
            *("--load", f"linux={folder / 'Image'}@{_PLACE:#x}", "--initrd", str(folder / "initrd")),
        )
        command = ["kinst-run", "-q", "--name", "opensbi", "--clock", "icount", "--memory", "512M", *loads]
        result = subprocess.run(
            [*command, *words, "-o", str(output), str(real_image("opensbi-1.6"))],
            input=_TYPED.encode(),
            capture_output=True,
            timeout=_BOUND,
            check=False,
        )
        found = re.findall(r"(?m)^(\S+) (\d+)$", output.read_text())
        error = f"exit code {result.returncode}: {result.stderr.decode()[-300:]}" if result.returncode else ""
        return Booted(lines_of(result.stdout), Counter({name: int(count) for name, count in found}), error)

    def probed(self) -> Booted:
        """The same with the entries of all functions of all three counted."""
        return self.run("-n", _PROGRAM)


def wrong(plain: Booted, probed: Booted) -> str:
    """What is not as it should be; empty: nothing."""
    if plain.error or probed.error:
        return plain.error or probed.error
    if of_programs(plain.lines)[-1:] != ("end",):
        return "no end of its programs"
    if Counter(plain.lines) != Counter(probed.lines):
        return "prints something else, probed"
    return "" if all(probed.entries[one] for one in MODULES) else "an image without a hit"


def row() -> tuple[str, bool]:
    """Boot twice; the row of the table, and whether all is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        stages = Stages(Path(folder))
        plain, probed = stages.run(), stages.probed()
    why = wrong(plain, probed)
    counts = (f"{probed.entries[one]:,}" for one in MODULES)
    return LAYOUT.format(NAME, f"{len(plain.lines):,}", *counts, why or "as it should be"), not why
