"""What a call has written -> memory as it was before, so that each call begins with the same memory."""

from typing import Final

from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.machine.system import System

_MOST_PAGES: Final = 64  # that are compared after each call


class CallMemory:
    """The pages that calls access, as they were before. A page is copied when its first access misses the TLB."""

    def __init__(self, system: System) -> None:
        """`system` has an image that was loaded for calls, and breakpoints in it."""
        self._memory = system.memory
        self._flush = system.flush_tlb
        self._pages: dict[int, bytes] = {}
        system.space.on_alias(self._reached)
        self._flush()

    def _reached(self, page: int) -> None:
        if page not in self._pages:
            self._pages[page] = self._memory.read(page * PAGE, PAGE)

    def undo(self) -> None:
        """Restore the pages that have changed."""
        for page, content in self._pages.items():
            if self._memory.read(page * PAGE, PAGE) != content:
                self._memory.write(page * PAGE, content)
        if len(self._pages) > _MOST_PAGES:  # most of them are not accessed again
            self._pages.clear()
            self._flush()
