"""Where the user's caches are, by the XDG base directory specification, and whether nobody else can write there."""

import os
import stat
from pathlib import Path
from typing import Final

_OURS: Final = "kinst-rewrite"


def cache_home() -> Path:
    """``$XDG_CACHE_HOME``, else ``~/.cache``. A relative name is ignored, as the specification asks."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"


def own_folder(*names: str) -> Path:
    """A folder of ours in it, created if need be. Raises OSError."""
    cache_home().mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = cache_home()
    for name in (_OURS, *names):
        folder /= name
        folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def is_private(folder: Path, depth: int) -> bool:
    """Whether nobody else can have put a file or link there: the folder and those above it, `depth` in all, are the
    user's own. Raises OSError."""
    states = [one.lstat() for one in (folder, *folder.parents[: depth - 1])]
    return all(stat.S_ISDIR(one.st_mode) and one.st_uid == os.getuid() and not one.st_mode & 0o022 for one in states)
