"""A file that appears under its name only when it is complete, even if others write it at the same time."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path
from typing import BinaryIO, Final

_DEVICES: Final = Path("/dev")
_DESCRIPTORS: Final = Path("/proc/self/fd")


@contextmanager
def fresh_file(path: Path, mode: int = 0o600) -> Iterator[BufferedRandom]:
    """A new file in the folder of `path`, for its owner alone, which gets that name when the block ends without an
    error.

    Until then it has no name, where the file system can have such files: if the process is killed, nothing is left.
    Elsewhere its name cannot be guessed, so that no other run writes to it and no link leads elsewhere; a process that
    is killed leaves that. Raises OSError, of `path` itself, if its folder takes no file.
    """
    partial = path.with_name(f".{path.name[:64]}.{secrets.token_hex(8)}.partial")
    try:
        with os.fdopen(_opened(path, partial), "w+b") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            _name(file.fileno(), partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _opened(path: Path, partial: Path) -> int:
    if _DESCRIPTORS.exists():  # without which it could not be given a name
        with suppress(OSError):  # not every file system has it
            return os.open(path.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        return os.open(partial, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # the user has not asked for the other name


def _name(descriptor: int, partial: Path) -> None:
    """Give a file a name of its own, if it has none: only then can it be renamed over an existing one."""
    if os.fstat(descriptor).st_nlink:
        return
    folder = os.open(partial.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # A descriptor of a folder makes it linkat(2), which follows the link that /proc has.
        os.link(_DESCRIPTORS / str(descriptor), partial.name, dst_dir_fd=folder)
    finally:
        os.close(folder)


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """The file that -o names: replaced, with its permissions, when the block ends without an error.

    Pipes, devices and what /dev names, such as /dev/stdout, are written to directly. A link is followed.
    """
    if _DEVICES in path.absolute().parents or (path.exists() and not path.is_file()):
        with path.open("ab") as stream:
            yield stream
        return
    path = path.resolve()
    with fresh_file(path, _mode(path)) as file:
        yield file


def _mode(path: Path) -> int:
    """The permissions of a file, or those that the process gives to new ones."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
