"""What is kept for the next run is of the files that it says."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from kinst.rewriter.shell import kept_files
from kinst.rewriter.shell.kept_files import file_digest, forget_beyond, forget_old


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "kept"
    found.mkdir()
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_digest_is_remembered_until_the_file_changes(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "_RACY", -1)  # as if it had been changed long ago
    path = tmp_path / "image"
    path.write_bytes(b"before")
    before, state = file_digest(path, folder), path.stat()
    assert before == _digest(path)
    (memo,) = folder.iterdir()
    memo.write_text("0" * 64)
    assert file_digest(path, folder) == "0" * 64, "it is not read again"
    memo.write_text("damaged")
    assert file_digest(path, folder) == before
    # The same size, the same time of modification, in place: only ctime differs.
    time.sleep(0.02)  # longer than a tick of the kernel's clock
    path.write_bytes(b"behind")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert file_digest(path, folder) == _digest(path) != before


def test_what_was_changed_just_now_is_not_remembered(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(b"before")
    assert file_digest(path, folder) == _digest(path)
    assert not list(folder.iterdir())


def test_what_cannot_be_read_twice_has_no_digest(tmp_path: Path, folder: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert file_digest(tmp_path / "pipe", folder) is None


def test_the_files_used_last_stay(folder: Path) -> None:
    for number in range(5):
        for suffix in (".elf", ".txt"):
            path = folder / f"{number}{suffix}"
            path.touch()
            os.utime(path, (number, number))
    forget_old(folder, ".elf", 2, ".txt")
    assert sorted(path.name for path in folder.iterdir()) == ["3.elf", "3.txt", "4.elf", "4.txt"]


@pytest.mark.parametrize(("most", "left"), [(100, "01234"), (35, "234"), (9, "4"), (0, "4")])
def test_as_many_bytes_stay_as_were_asked_for(folder: Path, most: int, left: str) -> None:
    for number in range(5):
        for suffix in (".elf", ".txt"):
            path = folder / f"{number}{suffix}"
            path.write_bytes(bytes(10))
            os.utime(path, (number, number))
    forget_beyond(folder, ".elf", most, ".txt")
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{name}{end}" for name in left for end in (".elf", ".txt")
    ]
