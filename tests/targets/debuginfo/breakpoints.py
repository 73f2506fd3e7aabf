"""Where gdb sets the breakpoints of ``break f``: in copies of f, too. And where it must, by debug information.

All that gdb (13.1) does otherwise than we do with the same copies:

- It does not know DW_AT_entry_pc: a copy is entered at the start of its first range that is not empty. Since gdb 16 it
  is DW_AT_entry_pc where that lies in a range of the copy. One that lies outside gdb leaves aside in order that a stop
  there is inside of the copy's block, though it is where control enters (`entry_of` in
  `kinst.targets.debuginfo.dwarf.ranges`).
- Copies that begin at one address are one location.
- Code that the function has of its own counts, under the names of clones (f.constprop.0, f.part.0) as well. It begins
  at DW_AT_low_pc, which is behind the instructions that -fpatchable-function-entry made; if a symbol of that very name
  is elsewhere, as before these instructions, that is a location, too: behind what gdb takes for a prologue there,
  where no line numbers tell it (on riscv64 that ends anywhere).

gdb skips prologues only in units that have no location lists, as without optimization: in none of the kernels.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from kinst.targets.debuginfo.inlined import InlinedCopy
from kinst.targets.elf.file import open_elf
from tests.targets.debuginfo.whole_dump import WholeCopy, own_code
from tests.writers.elf import EM_RISCV

_LOCATION = re.compile(r"^\d+(?:\.\d+)?\s.*?\b0x([0-9a-f]{8,})", re.MULTILINE)
_KNOWS_ENTRIES = 16  # version


@dataclass(frozen=True, slots=True)
class Debugger:
    """A gdb."""

    command: str
    version: int

    def locations(self, image: Path, functions: Iterable[str]) -> dict[str, set[int]]:
        """The breakpoints of each function; of all in one run, since reading a kernel takes gdb seconds."""
        words = [self.command, "-nx", "-batch", "-ex", "set breakpoint pending off", "-ex", "set width 0"]
        for function in functions:
            for each in (f"echo \\n@{function}\\n", f"break {function}", "info breakpoints", "delete"):
                words += ["-ex", each]
        text = subprocess.run([*words, str(image)], check=True, capture_output=True, text=True).stdout
        parts = (part.partition("\n") for part in text.split("\n@")[1:])
        return {function: {int(found, 16) for found in _LOCATION.findall(rest)} for function, _, rest in parts}

    def lines(self, image: Path, addresses: Sequence[int]) -> list[str]:
        """Where the source has addresses."""
        words = [word for address in addresses for word in ("-ex", f"info line *{address:#x}")]
        command = [self.command, "-nx", "-batch", *words, str(image)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    def entry(self, copy: InlinedCopy | WholeCopy) -> int:
        """Where it believes that a copy is entered."""
        inside = any(low <= copy.entry < high for low, high in copy.ranges)
        return copy.entry if inside and self.version >= _KNOWS_ENTRIES else copy.ranges[0][0]


@cache
def debugger() -> Debugger:
    """Skips the test where there is none; where the gate runs there must be one."""
    command = shutil.which("gdb-multiarch") or shutil.which("gdb")
    if command is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), "no gdb"
        pytest.skip("no gdb")
    text = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    version = re.search(r" (\d+)\.\d", text)
    assert version is not None, text
    return Debugger(command, int(version[1]))


@dataclass(frozen=True, slots=True)
class Outside:
    """Code of a function that is not in copies: where it is entered by debug information, and for each symbol elsewhere
    the addresses of which one is a location."""

    entries: set[int]
    symbols: list[range]


def outside_of_copies(image: Path, functions: Collection[str]) -> dict[str, Outside]:
    """The code that functions have of their own: by llvm-dwarfdump and nm."""
    found = {function: Outside(set(), []) for function in functions}
    is_anywhere = open_elf(image).header.machine == EM_RISCV
    for own in own_code(image, set(functions)):
        found[own.function].entries.add(own.entry)
    command = ["nm", "-S", "--defined-only", str(image)]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        first, *sizes, kind, name = line.split()
        address, size = int(first, 16), int(sizes[0], 16) if sizes and is_anywhere else 1
        if kind in "tTwW" and name in found and address not in found[name].entries:
            found[name].symbols.append(range(address, address + size))
    return found


def unlike(found: set[int], copies: set[int], outside: Outside) -> set[int]:
    """The locations that gdb should have had or has for no reason."""
    differing = (copies | outside.entries) ^ found
    for symbol in outside.symbols:
        excused = [one for one in sorted(differing & found) if one in symbol]
        if excused:
            differing.remove(excused[0])
        elif not any(one in symbol for one in found):
            differing.add(symbol.start)
    return differing
