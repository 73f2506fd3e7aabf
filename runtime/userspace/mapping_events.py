"""Places in Linux where an address space changes -> calls while somebody listens.

Files are shown to a process by mmap_region() and, moved, by copy_vma(); a fork copies what its parent has, at the same
addresses. unmap_vmas() takes pages away, also when a process ends.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.providers.host import Point, ProviderHost
from kinst.runtime.trap.trap import Firing

_MAPPED: Final = "fbt::mmap_region:return"
_MOVED: Final = "fbt::copy_vma:return"
_UNMAPPED: Final = "fbt::unmap_vmas:entry"
_NONE: Final = "the kernel has no function mmap_region(), where it would be seen which files are mapped"

Listener = Callable[[Firing], None]


class MappingEvents:
    """The places in one kernel."""

    def __init__(self, host: ProviderHost) -> None:
        """Plant them; nobody is called yet."""
        self._host = host
        self._mapped: Listener = _nobody
        self._moved: Listener = _nobody
        self._unmapped: Listener = _nobody
        self._points: list[Point] = [
            host.plant(_MAPPED, lambda firing: self._mapped(firing), may_lack=True),
            host.plant(_MOVED, lambda firing: self._moved(firing), may_lack=True),
            host.plant(_UNMAPPED, lambda firing: self._unmapped(firing), may_lack=True),
        ]

    def obstacle(self) -> str:
        """Why mappings cannot be followed; empty if they can."""
        return "" if self._host.address_of("mmap_region") is not None else _NONE

    @property
    def sees_all(self) -> bool:
        """Whether what is taken away is seen, too."""
        return all(self._host.address_of(name) is not None for name in ("copy_vma", "unmap_vmas"))

    def listen(self, mapped: Listener, moved: Listener, unmapped: Listener) -> None:
        """Call these from now on: at a return of mmap_region() (of an address) and of copy_vma() (of an area), and
        before pages are taken away."""
        self._mapped, self._moved, self._unmapped = mapped, moved, unmapped
        for point in self._points:
            point.arm()

    def rest(self) -> None:
        """Call nobody."""
        for point in self._points:
            point.disarm()


def _nobody(_firing: Firing) -> None:
    """Nobody listens."""
