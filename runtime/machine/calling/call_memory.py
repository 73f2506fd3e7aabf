"""What a call has written -> memory as it was before, so that each call begins with the same memory.

A page is copied to a file in memory before anything can store to it: before the TLB gets an entry that permits the
guest's stores, and before the host writes for it. After a call, one system call copies all of these pages back.
"""

import os
from typing import TYPE_CHECKING, Final
from weakref import finalize

from kinst.runtime.machine.physical.frames import OPEN_BUS, PAGE, TRAMPOLINE_FRAMES
from kinst.targets.errors import MachineError

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System

_TRACERS: Final = range(TRAMPOLINE_FRAMES // PAGE, OPEN_BUS // PAGE)  # pages of trampolines
_MOST_PAGES: Final = 512  # that are copied back after each call
_AT_ONCE: Final = 512  # buffers of a system call, of which 1024 are possible (IOV_MAX)


class CallMemory:
    """The pages that calls may have written, as they were before."""

    def __init__(self, system: "System") -> None:
        """The pages as they are at present. Breakpoints are in memory already. Raises MachineError: the host has no
        memory for it."""
        self._memory, self._space, self._system = system.memory, system.space, system
        try:
            self._file = os.memfd_create("kinst call")
        except OSError as error:
            raise MachineError(f"calls: {error.strerror}") from None
        finalize(self, os.close, self._file)
        self._pages: dict[int, memoryview] = {}
        self._looked_at: list[int] = []  # of them, those with code or tables, whose changes others must know of
        self._known = (0, 0, 0)  # how many pages there were of each kind, when that was found
        system.memory.on_write(self._written)
        system.space.on_writable(self._reached)

    def _reached(self, page: int) -> None:
        if page in self._pages or page in _TRACERS or (region := self._memory.find(page * PAGE, PAGE)) is None:
            return
        start = page * PAGE - region.base
        view = region.view[start : start + PAGE]
        os.pwrite(self._file, view, len(self._pages) * PAGE)
        self._pages[page] = view

    def _written(self, address: int, size: int, data: bytes | memoryview | None) -> None:
        if data is not None and not self._system.is_running:
            self._patch(address, data)
            return
        for page in range(address // PAGE, (address + size + PAGE - 1) // PAGE):
            self._reached(page)

    def _patch(self, address: int, data: bytes | memoryview) -> None:
        """Between two runs a tracer writes, and not a call: breakpoints, which stay."""
        places = {page: number for number, page in enumerate(self._pages)}
        for at in range(address & -PAGE, address + len(data), PAGE):
            if at // PAGE in places:
                start, end = max(at, address), min(at + PAGE, address + len(data))
                piece = data[start - address : end - address]
                os.pwrite(self._file, piece, places[at // PAGE] * PAGE + start - at)

    def undo(self) -> bool:
        """Restore the pages. Returns whether translations may have changed: the TLB was emptied, then."""
        has_moved = self._note_changes()
        views = list(self._pages.values())
        for start in range(0, len(views), _AT_ONCE):
            os.preadv(self._file, views[start : start + _AT_ONCE], start * PAGE)
        if len(self._pages) > _MOST_PAGES:  # most of them are not stored to again
            self._pages.clear()
            self._known = (0, 0, 0)
            has_moved = True
        if has_moved:
            self._space.forget()
        return has_moved

    def _note_changes(self) -> bool:
        """Have code that was changed translated again. Returns whether a table of translations was changed."""
        code, tables = self._memory.code_pages, self._space.table_pages
        counts = len(self._pages), len(code), len(tables)
        if counts != self._known:
            self._known = counts
            self._looked_at = [page for page in self._pages if page in code or page in tables]
        if not self._looked_at:
            return False
        places = {page: number for number, page in enumerate(self._pages)}
        changed = [page for page in self._looked_at if not self._is_as_it_was(page, places[page])]
        if not code.isdisjoint(changed):
            self._memory.code_changed()
        return not tables.isdisjoint(changed)

    def _is_as_it_was(self, page: int, number: int) -> bool:
        return os.pread(self._file, PAGE, number * PAGE) == bytes(self._pages[page])
