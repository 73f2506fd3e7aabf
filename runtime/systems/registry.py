"""The operating systems that are known, in the order in which an image is asked for their evidence."""

from typing import Final

from kinst.runtime.clauses.profiles import ProfileFactory
from kinst.runtime.systems.linux import linux_profile

SYSTEMS: Final[tuple[ProfileFactory, ...]] = (linux_profile,)
