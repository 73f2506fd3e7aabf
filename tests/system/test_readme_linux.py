"""README's example of a whole kernel, as a user types it: a function of a program, its system call and the disk."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.images import real_image

ROOT: Final = Path(__file__).parents[2]
HEADING: Final = "**From a function of your own program to the disk.**"
BLOCK: Final = re.compile(r"^```(?:sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CALLS: Final = 200  # of save(), by samples/linux/save.c
STAGES: Final = ("1. save()", "2. fdatasync()", "3. the disk")


def totals(printed: str) -> Counter[str]:
    """How many values each distribution has."""
    found, stage = Counter[str](), ""
    for line in printed.splitlines():
        if line.endswith(", in ns"):
            stage = line.removesuffix(", in ns")
        elif (row := re.fullmatch(r" +\d+ \|@* *(\d+) +", line)) is not None:
            found[stage] += int(row[1])
    return found


def test_what_is_shown_has_each_call() -> None:
    _, _, rest = (ROOT / "README.md").read_text().partition(HEADING)
    shown = totals(BLOCK.findall(rest)[1])
    assert tuple(shown) == STAGES
    assert [shown[stage] for stage in STAGES] == [CALLS, CALLS, 3 * CALLS + 2]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="needs mmdebstrap, e2fsprogs and kmod")
def test_a_function_its_system_call_and_the_disk(tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    (tmp_path / "linux").mkdir()
    (tmp_path / "linux/vmlinux").symlink_to(real_image("linux-6.1-amd64"))
    _, _, rest = (ROOT / "README.md").read_text().partition(HEADING)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", BLOCK.findall(rest)[0]],
        cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = totals(done.stdout)
    assert [found[stage] for stage in STAGES[:2]] == [CALLS, CALLS]
    # What is written, and the journal: how many requests depends on where the blocks are.
    assert found[STAGES[2]] >= 2 * CALLS
