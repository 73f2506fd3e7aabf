"""A file that appears under its name only when it is whole, even if others write it at the same time."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path


@contextmanager
def fresh_file(path: Path, mode: int = 0o600) -> Iterator[BufferedRandom]:
    """A new file in the folder of `path`, for its owner alone, which takes that name when the block ends well.

    Until then it has a name that cannot be guessed, so that no other run writes to it and no link leads elsewhere. If
    the process is killed, only that name is left.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".partial", dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
