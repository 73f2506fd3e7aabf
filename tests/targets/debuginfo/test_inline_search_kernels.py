"""Inlined copies in kernels of 270 to 590 MB: of some units, drawn by a seed, everything that llvm-dwarfdump has.

`tests.targets.debuginfo.all_copies` compares whole kernels.
"""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kinst.targets.debuginfo.debug_sections import open_debug_sections
from kinst.targets.debuginfo.elf_file import open_elf
from kinst.targets.debuginfo.inline_search import InlineSearch, exists
from kinst.targets.debuginfo.units import Units
from tests.images import CACHE
from tests.targets.debuginfo.dumped import copies, dumped

SEED, UNITS, NAMES = 4, 3, 4
KERNELS = [path for name in ("amd64", "arm64", "riscv64") if (path := CACHE / f"linux-{name}" / "image.elf").exists()]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.parent.name)
def test_a_draw_of_units(path: Path) -> None:
    choose, search = random.Random(SEED), InlineSearch(open_elf(path))
    units, compared = Units(open_debug_sections(path)).all, 0
    for unit in choose.sample([one for one in units if 20_000 < one.end - one.offset < 60_000], UNITS):
        entries = list(dumped(path, f"--debug-info={unit.first:#x}", "-c"))
        names = {one.offset: one.values["name"].split('"')[1] for one in entries if "name" in one.values}
        found = list(copies(entries))
        inlined = sorted({names[one.function] for one in found})
        for name in choose.sample(inlined, min(NAMES, len(inlined))):
            ours = {
                (copy.ranges, copy.entry, copy.call.line) for function in search.find(name) for copy in function.copies
            }
            theirs = {(one.ranges, one.starts, one.call_line) for one in found if names[one.function] == name}
            assert theirs and theirs <= ours, name
            compared += len(theirs)
    assert compared >= UNITS


MEASURED = """
import re, sys
from pathlib import Path
from kinst.targets.debuginfo.elf_file import open_elf
from kinst.targets.debuginfo.inline_search import find_inlines
found = find_inlines(open_elf(Path(sys.argv[1])), "vfs_create")
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(sum(len(one.copies) for one in found), int(peak[1]) // 1024)
"""


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.parent.name)
def test_memory_does_not_grow_with_the_file(path: Path) -> None:
    """In a process of its own, since a peak only grows; 250 MB are allowed."""
    output = subprocess.run([sys.executable, "-c", MEASURED, path], check=True, capture_output=True, text=True).stdout
    found, megabytes = map(int, re.findall(r"\d+", output))

    assert found == 1 and megabytes < 250
    assert exists(open_elf(path), "vfs_create")
