"""What mypy remembers goes from clone to clone, whole, and only from one without errors."""

import sys
from pathlib import Path

import pytest

from tests.check.types import copied, kept, main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))


def checks(own: Path, status: int = 0) -> list[str]:
    """In mypy's place: it writes down what it found before."""
    code = f"""
import pathlib, sys
own = pathlib.Path({str(own)!r})
before = (own / "found").read_text() if own.exists() else ""
own.mkdir(exist_ok=True)
(own / "found").write_text(before + "x")
sys.exit({status})
"""
    return [sys.executable, "-ISc", code]


def test_the_next_clone_begins_with_what_was_found(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(checks(first), first) == 0
    assert main(checks(second), second) == 0
    assert [(folder / "found").read_text() for folder in (first, second, kept())] == ["x", "xx", "xx"]
    assert main(checks(first), first) == 0  # it has its own
    assert (first / "found").read_text() == "xx"
    assert [path.name for path in kept().parent.iterdir()] == [kept().name]


def test_of_errors_nothing_is_kept(tmp_path: Path) -> None:
    assert main(checks(tmp_path / "own", 1), tmp_path / "own") == 1
    assert not kept().exists()


def test_a_copy_that_fails_leaves_what_there_was(tmp_path: Path) -> None:
    kept().mkdir(parents=True)
    (kept() / "found").write_text("whole")
    with pytest.raises(FileNotFoundError):
        copied(tmp_path / "none", kept())
    assert (kept() / "found").read_text() == "whole"
