"""kinst-run --on when one of the two is killed, at any moment: the other ends as well, and nothing is left."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.runtime.live.qemus import LAUNCH, ends, needs
from tests.samples.machines import MACHINES

_KILLS = 50
_PROGRAM = "fbt::vfs_*:entry { @[probefunc] = count(); } fbt::vfs_get:entry { @a = max(arg1); }"


def _descendants(process: int) -> list[int]:
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(_KILLS))
def test_a_kill_at_any_moment(seed: int, tmp_path: Path) -> None:
    sample, draw = MACHINES["riscv64"], random.Random(seed)
    needs(sample.qemu[0])
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(temporary)}
    on = f"{sample.qemu[0]} -M virt -m 128M"
    words = [sys.executable, "-c", LAUNCH, "--on", on, "-n", _PROGRAM, str(sample.image)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        end = time.monotonic() + draw.uniform(0.2, 2.5)
        children = list[int]()
        while time.monotonic() < end and run.poll() is None:
            children = _descendants(run.pid) or children
        is_ours = draw.random() < 0.5 or not children
        with suppress(ProcessLookupError):
            os.kill(run.pid if is_ours else children[0], signal.SIGKILL)
        _, errors = run.communicate(timeout=60)
    assert "Traceback" not in errors
    assert run.returncode in ((-signal.SIGKILL, 0) if is_ours else (0, 1)), errors
    assert all(map(ends, children)), "an orphan"
    assert not list(temporary.iterdir())
    # What is kept is whole: another run takes it.
    again = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert again.returncode == 0, again.stderr
    kept = sorted(path.suffix for path in (cache / "kinst-rewrite" / "live").iterdir())
    assert [one for one in kept if one != ".sha256"] == [".elf", ".plan", ".txt"], kept
