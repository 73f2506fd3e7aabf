"""The operating systems that are known, in the order in which an image is asked for their evidence."""

from typing import Final

from kinst.runtime.clauses.profiles import OperatingSystem
from kinst.runtime.systems.linux import LINUX

SYSTEMS: Final[tuple[OperatingSystem, ...]] = (LINUX,)
