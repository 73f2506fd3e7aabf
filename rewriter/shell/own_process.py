"""A module of ours -> how another process runs it, with the same packages and nothing of the current folder.

That folder may be an archive of somebody else's that was unpacked, with a `numpy.py` in it.
"""

import os
import sys
from pathlib import Path


def own_command(module: str, *arguments: str) -> list[str]:
    """The command line. -P: the current folder is not where Python looks for modules."""
    return [sys.executable, "-P", "-m", module, *arguments]


def own_environment() -> dict[str, str]:
    """The environment: packages are where this process has them. An empty or relative part of the path would be the
    current folder, or in it."""
    absolute = [one for one in sys.path if Path(one).is_absolute()]
    return os.environ | {"PYTHONPATH": os.pathsep.join(absolute)}
