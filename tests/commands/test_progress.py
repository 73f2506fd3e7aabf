"""Progress of slow work: on a terminal, with rate and time left; never in pipes, and not with -q."""

import re
import sys
from pathlib import Path

import pytest

from kinst.rewriter.shell.progress import bars
from tests.commands.launchers import environment_with_commands
from tests.images import real_image
from tests.runtime.terminal_session import TerminalSession

BAR = rb"(decoding|trampolines|writing) +\[[#-]{30}\] +\d+%  [\d,.]+( MB)?/s"
WORK = ["kinst-rewrite", "-p", "kinst:::", "--dry-run", "--format", "json"]


class Terminal:
    """A stream that says to be a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize(
    ("stage", "total", "amount", "seconds", "shown"),
    [
        ("writing", 40_000_000, 10_000_000, 5.0, "25%  2.0 MB/s  15 s left"),
        ("writing", 400_000_000, 10_000_000, 5.0, "2%  2.0 MB/s  3:15 min left"),
        ("trampolines", 8000, 6000, 2.0, "75%  3,000/s  1 s left"),
        ("trampolines", 8000, 8000, 2.0, "100%  4,000/s"),
        ("downloading", 0, 3_000_000, 2.0, "3.0 MB  1.5 MB/s"),
    ],
)
def test_rate_and_time_left(stage: str, total: int, amount: int, seconds: float, shown: str) -> None:
    now, stream = 0.0, Terminal()
    with bars(stream, clock=lambda: now)(stage, total) as done:  # type: ignore[arg-type]
        now = seconds
        done(amount)
        assert stream.text.endswith(f" {shown}\x1b[K")
    assert stream.text.endswith("\r\x1b[K")


def at_once(command: str) -> list[str]:
    """A command that shows bars from the start: how long work takes is the machine's affair."""
    module, function = {"kinst-rewrite": ("rewriter", "rewrite"), "kinst-run": ("runtime", "run")}[command]
    lines = (
        "from kinst.rewriter.shell import progress",
        "progress._PATIENCE = 0",
        f"from kinst.{module}.cli import {function}",
    )
    return [sys.executable, "-c", "; ".join((*lines, f"{function}()"))]


def test_a_terminal_shows_it_and_a_quiet_command_does_not(tmp_path: Path) -> None:
    environment, image = environment_with_commands(tmp_path), real_image("opensbi-1.1")
    command = [*at_once(WORK[0]), str(image), *WORK[1:]]
    with TerminalSession(command=command, environment=environment) as session:
        session.expect(BAR)
        assert session.ended() == 0
    with TerminalSession("-q", command=command, environment=environment) as session:
        assert session.ended() == 0
        assert re.search(BAR, session.shown) is None


def test_a_run_shows_how_its_image_is_patched(tmp_path: Path) -> None:
    environment, image = environment_with_commands(tmp_path), real_image("opensbi-1.1")
    words = [str(image), "-n", "kinst:::", "-e"]
    with TerminalSession(*words, command=at_once("kinst-run"), environment=environment) as session:
        session.expect(BAR)
        assert session.ended() == 0
