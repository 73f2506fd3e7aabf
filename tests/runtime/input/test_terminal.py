"""kinst-run at a terminal: keys are the guest's but for Ctrl-A, and every way out gives the terminal back."""

import os
import re
import signal
import time
from pathlib import Path

import click
import pytest

from tests.runtime.input.echo_guest import echo
from tests.runtime.terminal_session import TerminalSession

NOTICE = b"the guest has the keyboard: Ctrl-A x ends the run"
WFI = bytes.fromhex("73005010")


def instead_of_sleeping(folder: Path, word: str) -> Path:
    """The guest that sleeps, with another instruction where it does."""
    image = echo(folder, polls=False)
    before, _, behind = image.read_bytes().partition(WFI)
    image.write_bytes(before + bytes.fromhex(word) + behind)
    return image


def test_keys_are_the_guests_and_control_a_is_ours(tmp_path: Path) -> None:
    with TerminalSession(echo(tmp_path, polls=False), "-n", 'END { printf("the end"); }') as session:
        session.expect(NOTICE)
        session.expect(b">")
        raw = session.settings()
        assert raw != session.before
        session.press(b"ab\x03\x04\x1a\x11\x13")
        session.expect(rb"ab\x03\x04\x1a\x11\x13")
        session.press(b"\x01\x01\x01a\x01q")
        session.expect(rb"\x01\x01")
        session.press(b"\x01h")
        session.expect(rb"Ctrl-A x +end the run; .*\r\n")
        session.run.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, session.run.pid, os.WSTOPPED)
        session.set(session.before)
        session.run.send_signal(signal.SIGCONT)
        session.await_settings(raw)
        session.press(b"k")
        session.expect(b"k")
        session.press(b"\x01x")
        assert session.ended() == 0
        assert b":END the end\r\n" in session.shown
        assert b"interrupted: CPU 0" in session.shown
        assert session.settings() == session.before


def ended_by(number: signal.Signals, folder: Path) -> None:
    with TerminalSession(echo(folder, polls=True), "-n", 'END { printf("the end"); }') as session:
        session.expect(b">")
        assert session.settings() != session.before
        session.run.send_signal(number)
        assert session.ended() == 0
        assert b"the end" in session.shown
        assert session.settings() == session.before


def test_a_signal_gives_the_terminal_back(tmp_path: Path) -> None:
    ended_by(signal.SIGTERM, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_other_signals_do_too(tmp_path: Path, number: signal.Signals) -> None:
    ended_by(number, tmp_path)


def test_an_error_gives_the_terminal_back(tmp_path: Path) -> None:
    """The guest executes what is no instruction, and there is no memory where its handler should be."""
    with TerminalSession(instead_of_sleeping(tmp_path, "00000000")) as session:
        assert session.ended() == 5  # a fault of the guest
        assert "kinst-run: CPU 0 runs at 0x0" in click.unstyle(session.shown.decode())
        assert session.settings() == session.before


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "code", "words"),
    [
        (b"x", 0, ()),
        (b"", 3, ("-n", "tick-100ms { exit(3); }")),
        (b"", 1, ("-wn", "tick-100ms { panic(); }")),
        (b"", 0, ("--timeout", "100ms")),
    ],
)
def test_other_ends_do_too(tmp_path: Path, keys: bytes, code: int, words: tuple[str, ...]) -> None:
    with TerminalSession(echo(tmp_path, polls=False), *words) as session:
        session.expect(b">")
        session.press(keys)
        assert session.ended() == code
        assert session.settings() == session.before


@pytest.mark.long
def test_control_c_ends_a_run_whose_guest_reads_nothing(tmp_path: Path) -> None:
    with TerminalSession(instead_of_sleeping(tmp_path, "6f000000")) as session:  # a jump to itself
        session.expect(b">")
        session.press(b"0123456789abcdef")  # what the FIFO takes
        session.press(b"\x03")
        time.sleep(3)
        assert session.run.poll() is None
        session.press(b"\x03")
        assert session.ended() == 0


@pytest.mark.long
def test_where_the_console_is_not_shown_control_c_ends_the_run(tmp_path: Path) -> None:
    words = (echo(tmp_path, polls=False), "--console", tmp_path / "console", "-n", 'BEGIN { trace("go"); }')
    with TerminalSession(*words) as session:
        session.expect(b"go")
        assert session.settings() == session.before
        session.press(b"\x03")
        assert session.ended() == 0
        assert NOTICE not in session.shown


@pytest.mark.long
def test_records_and_the_guests_line_share_the_terminal(tmp_path: Path) -> None:
    program = 'tick-3s { printf("one\\ntwo"); } tick-4s { exit(0); }'
    with TerminalSession(echo(tmp_path, polls=False), "-qn", program) as session:
        session.expect(b">")
        session.press(b"typed")
        session.expect(b"typed")
        assert session.ended() == 0
        assert re.search(rb"\r {6}\rone\r\ntwo>typed", session.shown)
        assert NOTICE not in session.shown


@pytest.mark.long
@pytest.mark.parametrize("clock", ["host", "icount"])
def test_a_guest_that_sleeps_lets_the_host_sleep(tmp_path: Path, clock: str) -> None:
    with TerminalSession(echo(tmp_path, polls=False), "--clock", clock) as session:
        session.expect(b">")
        before = _cpu_time(session.run.pid)
        time.sleep(10)
        assert _cpu_time(session.run.pid) - before < 2
        session.press(b"k")
        session.expect(b"k")


def _cpu_time(process: int) -> float:
    """Seconds that a process has used, in all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
