"""A module of ours -> how another process runs it, with the same packages and nothing from the current folder.

That folder may be somebody else's archive, unpacked, with a `numpy.py` in it.
"""

import os
import sys
from pathlib import Path


def own_command(module: str, *arguments: str) -> list[str]:
    """The command line. -P: Python does not look for modules in the current folder."""
    return [sys.executable, "-P", "-m", module, *arguments]


def own_environment() -> dict[str, str]:
    """The environment: packages are where this process has them. An empty or relative part of the path would be the
    current folder, or in it."""
    absolute = [one for one in sys.path if Path(one).is_absolute()]
    return os.environ | {"PYTHONPATH": os.pathsep.join(absolute)}
