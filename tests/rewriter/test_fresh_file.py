"""Output files: whole or not there, whoever writes at the same time and however it ends."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kinst.rewriter.shell.fresh_file import fresh_file, replaced_file
from tests.rewriter.test_cli import ROOT

KILLED = """
import os, signal, sys
from pathlib import Path
from kinst.rewriter.shell.fresh_file import fresh_file
with fresh_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=["without a name", "with a name"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems that have files without names, and those that do not: a folder cannot be opened to write."""
    if request.param == "with a name":
        monkeypatch.setattr(os, "O_TMPFILE", 0)


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "none" / "out"
    with pytest.raises(FileNotFoundError) as error, fresh_file(path):
        pass
    assert error.value.filename == str(path)


def test_one_of_many_writers_wins_and_nothing_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "out"

    def write(letter: int) -> None:
        with fresh_file(path) as file:
            for _ in range(64):
                file.write(bytes([letter]) * 1000)

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, range(65, 91)))
    content = path.read_bytes()
    assert content == content[:1] * 64_000
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), fresh_file(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"before" and len(list(tmp_path.iterdir())) == 1


def test_a_killed_writer_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / ".typing"), str(ROOT)])}
    run = subprocess.run([sys.executable, "-c", KILLED, path], env=environment, check=False)
    assert run.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())
    with fresh_file(path) as file:  # and does not keep the next one from it
        file.write(b"whole")
    assert path.read_bytes() == b"whole"


def test_a_file_is_private_until_it_is_said_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with fresh_file(path, 0o644):
        assert all(partial.stat().st_mode & 0o777 == 0o600 for partial in tmp_path.iterdir())
    assert path.stat().st_mode & 0o777 == 0o644


def test_what_an_option_names_keeps_its_permissions_and_links_stay(tmp_path: Path) -> None:
    old, link = tmp_path / "old", tmp_path / "link"
    old.write_text("old")
    old.chmod(0o640)
    link.symlink_to(old)
    with replaced_file(link) as file:
        file.write(b"new")
        assert old.read_text() == "old"
    assert link.is_symlink()
    assert (old.read_text(), old.stat().st_mode & 0o777) == ("new", 0o640)
    before = os.umask(0o027)
    try:
        with replaced_file(tmp_path / "fresh") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o640


def test_standard_output_is_not_replaced_by_its_name(tmp_path: Path) -> None:
    """/dev/stdout leads to the file that a shell opened, of which there must not be another."""
    code = "import pathlib; from kinst.rewriter.shell.fresh_file import replaced_file\n"
    code += "with replaced_file(pathlib.Path('/dev/stdout')) as file: file.write(b'new')"
    path = tmp_path / "out"
    path.write_text("old ")
    with path.open("ab") as out:
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / ".typing")}
        subprocess.run([sys.executable, "-c", code], stdout=out, env=environment, check=True)
        assert os.fstat(out.fileno()).st_ino == path.stat().st_ino
    assert path.read_text() == "old new"
