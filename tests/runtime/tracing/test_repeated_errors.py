"""A clause that fails again and again says so once, and that its exit() was not reached."""

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run

PROBE = "profile:::tick-200us"


def warnings(program: str) -> list[str]:
    words = ("-q", "--clock", "icount", "--timeout", "500ms", "-n", program)
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    return [line for line in result.stderr.splitlines() if line.startswith("kinst-run:")]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            "tick-200us { x++; this->v = *(int *)8; exit(0); }",
            f"clause 1 of {PROBE} has failed 1,000 times: invalid address (0x8) in action #2; "
            "its exit() was never reached",
        ),
        (
            "BEGIN { x = 1; } tick-200us /1 / (x - 1)/ { exit(0); }",
            f"clause 2 of {PROBE} has failed 1,000 times: divide-by-zero in predicate; its exit() was never reached",
        ),
        (
            "tick-200us { if (*(int *)16) { exit(0); } }",
            f"clause 1 of {PROBE} has failed 1,000 times: invalid address (0x10) in action #1; "
            "its exit() was never reached",
        ),
        (
            "tick-200us { x++ ; trace(*(char *)x); } tick-400ms { exit(0); }",
            f"clause 1 of {PROBE} has failed 1,000 times: invalid address (0x3e8) in action #2",
        ),
        (
            "tick-200us { trace(*(char *)8); } tick-200us { trace(*(int *)8); }",  # one line for a probe
            f"clause 1 of {PROBE} has failed 1,000 times: invalid address (0x8) in action #1",
        ),
    ],
)
def test_a_thousand_equal_errors(program: str, expected: str) -> None:
    assert warnings(program) == [f"kinst-run: {expected}"]


def test_some_errors_are_no_matter() -> None:
    assert warnings("tick-1ms { this->v = *(int *)8; exit(0); }") == []


def test_it_is_said_before_the_run_ends() -> None:
    """Between other lines, not behind them all."""
    words = ("-q", "--clock", "icount", "--timeout", "500ms", "-n", "tick-200us { trace(*(int *)8); }")
    lines = CliRunner().invoke(run, words, prog_name="kinst-run").stderr.splitlines()
    assert lines[0].startswith("kinst-run: clause 1")
    assert lines.count(lines[1]) > 2000
