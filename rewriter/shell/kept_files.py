"""Files that one run keeps for the next, in a private folder of the user's cache, by the digest of what they follow
from."""

import hashlib
import re
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Final

from kinst.rewriter.shell.cache_home import is_private, own_folder
from kinst.rewriter.shell.fresh_file import fresh_file

_DEPTH: Final = 2  # folders of ours: kinst-rewrite, and that of the files
_RACY: Final = 2_000_000_000  # ns after which another change is sure to have another time, on any file system
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_MEMOS: Final = 64  # digests of files that are kept


def kept_folder(name: str) -> Path | None:
    """The folder of that name; None if no private one can be had: another user could replace what is in it."""
    with suppress(OSError):
        folder = own_folder(name)
        return folder if is_private(folder, _DEPTH) else None
    return None


def forget_old(folder: Path, suffix: str, most: int, *others: str) -> None:
    """Remove all files with a suffix but so many that were used last, with those of the same name and other
    suffixes."""
    with suppress(OSError):
        for old in sorted(folder.glob(f"*{suffix}"), key=lambda path: path.stat().st_mtime)[:-most]:
            _forget(old, suffix, *others)


def forget_beyond(folder: Path, suffix: str, most: int, *others: str) -> None:
    """Remove the files with a suffix that were used longest ago, as `forget_old` does, until the rest have `most` bytes
    or fewer; the one that was used last stays in any case."""
    with suppress(OSError):
        left = sorted(((path, path.stat()) for path in folder.glob(f"*{suffix}")), key=lambda one: one[1].st_mtime)
        size = sum(state.st_size for _, state in left)
        for old, state in left[:-1]:
            if size <= most:
                break
            _forget(old, suffix, *others)
            size -= state.st_size


def _forget(path: Path, *suffixes: str) -> None:
    for one in suffixes:
        path.with_suffix(one).unlink(missing_ok=True)


def file_digest(path: Path, folder: Path) -> str | None:
    """The SHA-256 of a file, as 64 digits; None of what is no regular file, which cannot be read twice.

    It is remembered in a folder under what the file system says of the file, as git's index does: a change of the
    content changes the time of the last change (ctime), which no program can set. A file that was changed so lately
    that its next change could have the same time is not remembered.

    Raises:
        OSError: it cannot be read.
    """
    state = _state(path)
    if state is None:
        return None
    memo = folder / f"{hashlib.sha256(repr(state).encode()).hexdigest()[:32]}.sha256"
    with suppress(OSError, UnicodeDecodeError):
        text = memo.read_text("ascii")
        if _DIGEST.fullmatch(text):
            memo.touch()
            return text
    begun = time.time_ns()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if begun - state[-1] > _RACY and _state(path) == state:
        with suppress(OSError), fresh_file(memo) as out:
            out.write(digest.encode())
        forget_old(folder, ".sha256", _MEMOS)
    return digest


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes if the content of a regular file does, the time of its last change last."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def code_state(packages: Sequence[ModuleType]) -> int:
    """When the code of some packages was last changed: without it, what is kept would hide the change of a
    developer."""
    folders = (Path(package.__file__).parent for package in packages if package.__file__)
    return max(path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*.py"))
