"""stop() under kinst-run --on: the guest is paused, and goes on when somebody lets it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.runtime.live.qemus import endless, ends, needs, started
from tests.runtime.terminal_session import TerminalSession
from tests.samples.machines import MACHINES

ON = ("--on", "qemu-system-riscv64 -M virt -m 64M")
# A line for each ten calls, and one each 50 ms whatever the guest does.
PROGRAM = """
    fbt::work:entry { n++; }
    fbt::work:entry /n == 100/ { stop(); }
    tick-50ms { printf("%d\\n", n); }
"""


def running(image: Path, *words: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return started(*ON, "-w", "-q", "-x", "switchrate=20hz", "-n", PROGRAM, *words, image)


def numbers(run: subprocess.Popen[str]) -> Iterator[int]:
    assert run.stdout is not None
    for line in run.stdout:
        if line.strip():
            yield int(line)


def paused_at(found: Iterator[int]) -> int:
    """How many calls there were, when there are no more: ten times as many as in the time between two lines."""
    last, same = -1, 0
    for number in found:
        last, same = number, same + 1 if number == last and number >= 100 else 0
        if same == 10:
            return number
    raise AssertionError("it has ended")


def test_it_goes_on_at_sigcont(tmp_path: Path) -> None:
    with running(endless(tmp_path)) as run:
        found = numbers(run)
        assert run.stderr is not None
        line = run.stderr.readline()
        assert "stop() by fbt:endless:work:entry on CPU 0" in line
        assert f"the guest is paused: kill -CONT {run.pid} lets it go on" in line
        stopped = paused_at(found)
        run.send_signal(signal.SIGCONT)
        assert any(number > stopped for number in found)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (0, "")


def test_it_goes_on_at_a_key(tmp_path: Path) -> None:
    with TerminalSession(*ON, "-w", "-n", PROGRAM, endless(tmp_path)) as session:
        session.expect(rb"the guest is paused: kill -CONT \d+ lets it go on, and so does Ctrl-A c")
        session.press(b"\x01c")
        session.expect(rb" (?!1\d\d\r)\d{3,}\r\n")  # 200, or more
        session.press(b"\x01x")
        assert session.ended() == 0


def test_a_paused_guest_ends_with_its_run(tmp_path: Path) -> None:
    with running(endless(tmp_path)) as run:
        paused_at(numbers(run))
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        os.kill(run.pid, signal.SIGTERM)
        run.communicate(timeout=60)
    assert children
    assert all(ends(int(child)) for child in children)


def test_our_own_machine_ignores_it(tmp_path: Path) -> None:
    words = (
        "-w",
        "--clock",
        "icount",
        "--timeout",
        "1s",
        "-n",
        "fbt::work:entry /n++ == 5/ { stop(); } END { trace(n); }",
    )
    done = kinst_run(endless(tmp_path), *words)
    assert "stop() by fbt:endless:work:entry" in done.stderr
    assert "ignored" in done.stderr
    assert int(done.stdout.split()[-1]) > 500


@pytest.mark.parametrize("action", ["chill(1000)"])
def test_what_would_come_too_late_is_refused(action: str) -> None:
    sample = MACHINES["riscv64"]
    needs(sample.qemu[0])
    done = kinst_run("--on", "qemu", "-w", "-n", f"fbt::vfs_get:entry {{ {action}; }}", sample.image)
    assert done.returncode == 1
    assert "chill(): the guest has gone on since the hit: leave --on out" in done.stderr
