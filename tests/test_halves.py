"""Two processes run each test once, from both ends, and one tells what both found."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.launchers import ENVIRONMENT
from tests.halves import Claims

COUNT = 24

TESTS = f"""
import os, signal, time
from pathlib import Path

import pytest

HERE = Path(__file__).parent

def met(number):
    # The first and the last test wait for each other: so they are of two processes.
    (HERE / f"at-{{number}}").touch()
    while not (HERE / f"at-{{({COUNT} - 1) * (not number)}}").exists():
        time.sleep(0.01)

@pytest.fixture(scope="module")
def process():
    return os.getpid()

@pytest.mark.parametrize("number", range({COUNT}))
def test_one(number, process, tmp_path):
    print(f"number {{number}} says")
    (HERE / f"ran-{{number}}").touch(exist_ok=False)
    if number in (0, {COUNT} - 1):
        met(number)
        (HERE / f"of-{{os.getpid()}}").touch()
        ENDS
    if number == 1:
        pytest.skip("as it is")
"""


def run(folder: Path, end: str, *words: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_some.py").write_text(TESTS.replace("ENDS", end))
    (folder / "conftest.py").write_text(
        "from tests.halves import Halves\ndef pytest_configure(config): config.pluginmanager.register(Halves())\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), *words]
    own = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("PYTEST_")}
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others' take a second to import
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


def test_each_runs_once_and_one_tells_of_all(tmp_path: Path) -> None:
    done = run(tmp_path, "assert number in ()", "-rs")
    assert (done.returncode, done.stderr) == (1, "")
    assert f"2 failed, {COUNT - 3} passed, 1 skipped" in done.stdout
    assert "as it is" in done.stdout
    assert len([*tmp_path.glob("ran-*")]) == COUNT
    assert len([*tmp_path.glob("of-*")]) == 2
    said = re.findall(r"^number (\d+) says$", done.stdout, re.MULTILINE)
    assert sorted(said) == ["0", str(COUNT - 1)]  # each with the test that failed


@pytest.mark.parametrize("number", [0, COUNT - 1])
def test_a_failure_ends_both(number: int, tmp_path: Path) -> None:
    """The first one or the last; who is not done with its test when the other fails ends it, and begins none."""
    wait = "while not (HERE / 'failed').exists(): time.sleep(0.01)\n        time.sleep(1)"
    done = run(tmp_path, f"if number == {number}: (HERE / 'failed').touch(); pytest.fail()\n        {wait}", "-x")
    assert done.returncode == 1
    assert "1 failed" in done.stdout and len([*tmp_path.glob("ran-*")]) < COUNT


def test_a_half_that_is_lost_is_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, f"if number == {COUNT - 1}: os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == 1
    assert "the forked half of the tests ended with status -9, its results are lost" in done.stdout


def test_as_many_claims_as_tests() -> None:
    claims = Claims(3)
    assert [claims.claim() for _ in range(5)] == [True, True, True, False, False]
    given_up = Claims(20_000)
    assert given_up.claim()
    given_up.give_up()
    assert not given_up.claim()


def test_more_tests_than_a_pipe_holds_are_told() -> None:
    with pytest.raises(OSError, match="a pipe does not hold 10000000 bytes"):
        Claims(10_000_000)
