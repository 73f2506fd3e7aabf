"""README's example of a whole kernel, as a user types it: a function of a program, its system call and the disk."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.images import real_image
from tests.linux_scripts.told import histogram

ROOT: Final = Path(__file__).parents[2]
HEADING: Final = "**From a function of your own program to the disk.**"
BLOCK: Final = re.compile(r"^```(?:sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CALLS: Final = 200  # of save(), by samples/linux/save.c
STAGES: Final = ("1. save()", "2. fdatasync()", "3. the disk")


def totals(printed: str) -> list[int]:
    """How many values each stage's distribution has."""
    return [sum(histogram(printed, rf"{re.escape(stage)}, in ns").values()) for stage in STAGES]


def test_what_is_shown_has_each_call() -> None:
    _, _, rest = (ROOT / "README.md").read_text().partition(HEADING)
    shown = BLOCK.findall(rest)[1]
    assert re.findall(r"^(.*), in ns$", shown, re.MULTILINE) == list(STAGES)
    assert totals(shown) == [CALLS, CALLS, 3 * CALLS + 2]


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
    *calls, requests = totals(done.stdout)
    assert calls == [CALLS, CALLS]
    # What is written, and the journal: how many requests depends on where the blocks are.
    assert requests >= 2 * CALLS
