"""-o with formats that are documents: a file is whole, or it is not there."""

import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import real_image
from tests.runtime.test_cli import COMMAND, ENVIRONMENT

PROGRAM = "fbt:::entry { @[stack(4)] = count(); }"


def test_control_c_leaves_a_whole_picture_and_a_whole_report(tmp_path: Path) -> None:
    """OpenSBI ends in a loop of traps, since there is nothing where it jumps to."""
    picture = tmp_path / "t.svg"
    picture.write_text("old")
    outputs = ["--format", "flamegraph", "-o", str(picture), "--report", str(tmp_path / "t.html")]
    command = [*COMMAND, str(real_image("opensbi-1.1")), *outputs, "-n", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        while b"OpenSBI" not in process.stdout.readline():  # it runs, and its console is here
            assert process.poll() is None
        assert picture.read_text() == "old"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"kinst-run: interrupted: CPU 0 runs at 0x" in errors
    assert ElementTree.parse(picture).getroot().tag.endswith("}svg")
    assert "ended: interrupted" in (tmp_path / "t.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.html", "t.svg"]


def test_a_run_that_does_not_begin_leaves_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "t.txt"
    old.write_text("old")
    arguments = ["--format", "folded", "-o", str(old), "-n", "BEGIN { @[probename] = count(); }"]
    assert CliRunner().invoke(run, arguments).exit_code == 2
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("t.txt", "old")]


@pytest.mark.parametrize("form", ["folded", "perfetto"])
def test_where_no_file_can_be_made_one_line_says_so(form: str, tmp_path: Path) -> None:
    missing = tmp_path / "none" / "t"
    arguments = ["--format", form, "-q", "-o", str(missing), "-n", "BEGIN { @[stack()] = count(); exit(0) }"]
    result = CliRunner().invoke(run, arguments)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "No such file or directory" in line
