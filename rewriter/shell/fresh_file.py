"""A file that appears under its name only when it is whole, even if others write it at the same time."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path
from typing import BinaryIO, Final

_DEVICES: Final = Path("/dev")


@contextmanager
def fresh_file(path: Path, mode: int = 0o600) -> Iterator[BufferedRandom]:
    """A new file in the folder of `path`, for its owner alone, which takes that name when the block ends well.

    Until then it has a name that cannot be guessed, so that no other run writes to it and no link leads elsewhere. If
    the process is killed, only that name is left. Raises OSError, of `path` itself, if its folder takes no file.
    """
    descriptor, partial = _partial(path)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _partial(path: Path) -> tuple[int, Path]:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".partial", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # nobody has asked for the other name
    return descriptor, Path(name)


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """What -o names: a file that is replaced, with its permissions, when the block ends well. Pipes, devices and what
    /dev names, such as /dev/stdout, are written to as they are. A link is followed."""
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
