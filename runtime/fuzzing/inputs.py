"""Folders of inputs: what is in one, and what is added to it."""

import hashlib
from pathlib import Path

from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.targets.errors import KinstError, UsageError


def read_inputs(folder: Path, largest: int) -> list[bytes]:
    """The files of a folder, in the order of their names, each once; of longer ones the beginning. What is no file is
    left alone. Raises UsageError: it cannot be read."""
    try:
        files = sorted(one for one in folder.iterdir() if one.is_file())
        return list(dict.fromkeys(_beginning(one, largest) for one in files))
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: {error.strerror}") from None


def _beginning(path: Path, largest: int) -> bytes:
    with path.open("rb") as file:
        return file.read(largest)


def make_folder(folder: Path) -> None:
    """Make a folder, if there is none. Raises UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from None


def keep_input(folder: Path, data: bytes, prefix: str = "") -> Path:
    """Write an input, whose name follows from its bytes. Returns its path. Raises KinstError."""
    path = folder / f"{prefix}{hashlib.sha256(data).hexdigest()[:16]}"
    if not path.exists():
        try:
            with fresh_file(path, 0o644) as file:
                file.write(data)
        except OSError as error:
            raise KinstError(f"{path}: {error.strerror}") from None
    return path
