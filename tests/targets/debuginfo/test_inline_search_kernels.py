"""Inlined copies in kernels of 270 to 590 MB: of functions drawn by a seed, everything that llvm-dwarfdump has.

`tests.targets.debuginfo.all_copies` compares whole kernels.
"""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.elf.file import open_elf
from tests.images import CACHE
from tests.targets.debuginfo.all_copies import Comparison
from tests.targets.debuginfo.whole_dump import copy_counts

SEED, DRAWN, MOST_COPIES = 4, 196, 4
KERNELS = [path for name in ("amd64", "arm64", "riscv64") if (path := CACHE / f"linux-{name}" / "image.elf").exists()]


@pytest.mark.long
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.parent.name)
def test_a_draw_of_functions(path: Path) -> None:
    """Two hundred: any, and those with the most copies."""
    counts, search = copy_counts(path), InlineSearch(open_elf(path))
    most = [name for name, _ in counts.most_common(MOST_COPIES)]
    names = {*random.Random(SEED).sample(sorted(counts.keys() - set(most)), DRAWN), *most}
    comparison = Comparison(path, names)
    for name in names:
        comparison.compare(name, search.find(name))
    comparison.end()
    assert not comparison.differences
    assert comparison.compared == sum(counts[name] for name in names) > 15_000


MEASURED = """
import re, sys
from pathlib import Path
from kinst.targets.elf.file import open_elf
from kinst.targets.debuginfo.inline_search import InlineSearch
found = InlineSearch(open_elf(Path(sys.argv[1]))).find("vfs_create")
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(sum(len(one.copies) for one in found), int(peak[1]) // 1024)
"""


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.parent.name)
def test_memory_does_not_grow_with_the_file(path: Path) -> None:
    """In a process of its own, since a peak only grows; 250 MB are allowed."""
    output = subprocess.run([sys.executable, "-c", MEASURED, path], check=True, capture_output=True, text=True).stdout
    found, megabytes = map(int, re.findall(r"\d+", output))

    assert found == 1 and megabytes < 250
    assert InlineSearch(open_elf(path)).exists("vfs_create")
