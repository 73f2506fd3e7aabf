"""Where caches of the user are, as the XDG base directory specification says."""

import os
from pathlib import Path


def cache_home() -> Path:
    """``$XDG_CACHE_HOME``, else ``~/.cache``: a relative name is ignored, as the rules want it."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"
