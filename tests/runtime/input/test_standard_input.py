"""Standard input that is no terminal, and --input, with guests that sleep and guests that poll."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kinst.runtime.cli import run
from tests.runtime.input.echo_guest import echo
from tests.runtime.test_cli import COMMAND, ENVIRONMENT, SAMPLE

TEXT = bytes(range(32, 120)) * 10
COUNT = 'profile-1000 { @ = count(); } END { printa("%@d", @); }'


class Here:
    """kinst-run in this process, with a file of its own as standard input."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        self._patch, self._captured = monkeypatch, capfdbinary

    def run(self, *words: object, stdin: bytes | Path | int = b"") -> tuple[int, bytes, bytes]:
        """The exit code, stdout and stderr. Standard input is a pipe with these bytes, or a file."""
        with os.fdopen(_opened(stdin)) as file:
            self._patch.setattr(sys, "stdin", file)
            code = 0
            try:
                run.main([str(word) for word in words], "kinst-run", standalone_mode=False)
            except SystemExit as end:
                code = int(end.code or 0)
        sys.stdout.flush()
        captured = self._captured.readouterr()
        return code, captured.out, captured.err


def _opened(stdin: bytes | Path | int) -> int:
    if isinstance(stdin, int):
        return stdin
    if isinstance(stdin, Path):
        return os.open(stdin, os.O_RDONLY)
    ours, theirs = os.pipe()
    os.write(theirs, stdin)
    os.close(theirs)
    return ours


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Here:
    return Here(monkeypatch, capfdbinary)


@pytest.mark.parametrize("polls", [False, True])
@pytest.mark.parametrize("clock", ["host", "icount"])
def test_a_pipe_or_a_file_is_the_guests(tmp_path: Path, here: Here, clock: str, *, polls: bool) -> None:
    image, script = echo(tmp_path, polls=polls), tmp_path / "script"
    script.write_bytes(TEXT + b"x and what the guest does not take")
    for stdin in (script.read_bytes(), script):
        assert here.run(image, "--clock", clock, stdin=stdin) == (0, b">" + TEXT, b"")


def test_the_end_of_the_input_is_no_end_of_the_run(tmp_path: Path, here: Here) -> None:
    words = (echo(tmp_path, polls=False), "-q", "--clock", "icount", "-n", "tick-200ms { exit(7); }")
    assert here.run(*words, stdin=b"abc") == (7, b">abc\n\n", b"")


def test_a_guest_that_reads_nothing_leaves_the_pipe_alone(here: Here) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"for whoever comes next")
    os.close(theirs)
    assert here.run(SAMPLE, "--clock", "icount", stdin=os.dup(ours))[0] == 0
    assert os.read(ours, 100) == b"for whoever comes next"
    os.close(ours)


def test_a_guest_takes_no_more_than_it_reads(tmp_path: Path, here: Here) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"abcx" + b"for whoever comes next")
    os.close(theirs)
    assert here.run(echo(tmp_path, polls=True), stdin=os.dup(ours))[:2] == (0, b">abc")
    assert os.read(ours, 100) == b"for whoever comes next"
    os.close(ours)


def test_a_pipe_is_answered_at_once(tmp_path: Path) -> None:
    """By a guest that sleeps, while the pipe stays open: no end and no time brings the answer."""
    command = [*COMMAND, str(echo(tmp_path, polls=False))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.read(1) == b">"
        for letter in (b"a", b"b"):
            process.stdin.write(letter)
            process.stdin.flush()
            assert process.stdout.read(1) == letter
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.wait(60) == 0


# -- --input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("polls", [False, True])
@pytest.mark.parametrize("options", [(), ("--prompt", "^[>a-z]*$")])
def test_a_file_is_typed_line_by_line_and_at_the_same_times_in_every_run(
    tmp_path: Path, here: Here, options: tuple[str, ...], *, polls: bool
) -> None:
    """Before each line the guest has rested for 20 ms; standard input is nobody's then."""
    lines = tmp_path / "lines"
    lines.write_bytes(b"one\ntwo\r\nx")
    words = (echo(tmp_path, polls=polls), "-q", "--clock", "icount", "--input", lines, *options, "-n", COUNT)
    first = here.run(*words, stdin=b"not this")
    assert first == here.run(*words)
    code, output, _ = first
    found = re.fullmatch(rb"(\d+)>one\rtwo\r\n\n", output)
    assert code == 0
    assert found is not None, output
    assert 59 <= int(found[1]) <= 65


def test_a_prompt_that_never_comes_is_waited_for(tmp_path: Path, here: Here) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"x\n")
    words = (echo(tmp_path, polls=False), "--clock", "icount", "--input", lines, "--prompt", "login:")
    assert here.run(*words, "--timeout", "2s")[1] == b">"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--prompt", "x"), b"--prompt x: there is nothing to type: give --input"),
        (("--input", SAMPLE, "--prompt", "["), b"--prompt [: not a regular expression"),
        (("--input", "/dev/zero"), b"--input /dev/zero: not a regular file"),
        (("--input", "nowhere"), b"--input nowhere: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_typed(here: Here, words: tuple[object, ...], message: bytes) -> None:
    code, output, errors = here.run(SAMPLE, *words)
    assert (code, output) == (2, b"")
    assert message in errors
    assert errors.count(b"\n") == 1
