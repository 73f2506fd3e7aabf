"""What git says has changed since a branch was left."""

import subprocess
from pathlib import Path

import pytest

from tests.check.changes import changed_files


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", "-C", root, *who, *words], check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout of a branch that has left main; main has gone on."""
    (tmp_path / ".gitignore").write_text("*.tmp\n")
    for name in ("kept", "committed", "edited", "removed", "moved", "theirs"):
        (tmp_path / name).write_text(f"{name}\n")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "all")
    git(tmp_path, "branch", "mine")
    (tmp_path / "theirs").write_text("changed\n")
    git(tmp_path, "commit", "-am", "theirs")
    git(tmp_path, "checkout", "mine")
    (tmp_path / "committed").write_text("changed\n")
    git(tmp_path, "commit", "-am", "mine")
    return tmp_path


def test_what_was_committed_edited_added_removed_and_renamed(root: Path) -> None:
    assert changed_files(root, "main") == {"committed"}
    (root / "edited").write_text("changed\n")
    (root / "removed").unlink()
    (root / "new ünd spaced").touch()
    (root / "ignored.tmp").touch()
    git(root, "mv", "moved", "elsewhere")
    changed = {"committed", "edited", "removed", "new ünd spaced", "moved", "elsewhere"}
    assert changed_files(root, "main") == changed


def test_a_branch_that_there_is_not_is_an_error(root: Path) -> None:
    with pytest.raises(LookupError, match="nowhere"):
        changed_files(root, "nowhere")
