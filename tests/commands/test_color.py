"""Colours of errors: on a terminal, unless NO_COLOR or --color says otherwise; never in pipes by themselves."""

import subprocess
from pathlib import Path

import pytest

from tests.commands.launchers import environment_with_commands
from tests.runtime.terminal_session import TerminalSession

WRONG = ["-n", "BEGIN { trace(nothing); }"]
CARETS = b"\x1b[32m\x1b[1m                  ^^^^^^^"
NAME = b"\x1b[31m\x1b[1mkinst-run:\x1b[0m invalid probe"


def on_terminal(folder: Path, *options: str, **variables: str) -> bytes:
    """What a terminal shows of an error in a D program."""
    environment = environment_with_commands(folder) | {"TERM": "xterm"} | variables
    with TerminalSession(
        *options, *WRONG, command=[str(folder / "bin" / "kinst-run")], environment=environment
    ) as session:
        assert session.ended() == 1
        return session.shown


def test_a_terminal_has_them(tmp_path: Path) -> None:
    shown = on_terminal(tmp_path)
    assert NAME in shown and CARETS in shown


@pytest.mark.parametrize(("options", "variables"), [(["--color", "never"], {}), ([], {"NO_COLOR": "1"})])
def test_who_wants_none_gets_none(options: list[str], variables: dict[str, str], tmp_path: Path) -> None:
    shown = on_terminal(tmp_path, *options, **variables)
    assert b"^^^^^^^" in shown and b"\x1b" not in shown


def piped(folder: Path, *options: str) -> bytes:
    """What a pipe gets."""
    environment = environment_with_commands(folder)
    environment.pop("NO_COLOR", None)
    command = [str(folder / "bin" / "kinst-run"), *options, *WRONG]
    result = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert result.returncode == 1
    return result.stderr


def test_a_pipe_has_none(tmp_path: Path) -> None:
    errors = piped(tmp_path)
    assert b"^^^^^^^" in errors and b"\x1b" not in errors


def test_a_pipe_has_them_if_asked_for(tmp_path: Path) -> None:
    errors = piped(tmp_path, "--color", "always")
    assert NAME in errors and CARETS in errors
