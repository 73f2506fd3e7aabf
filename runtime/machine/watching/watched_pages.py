"""Pages in which something other than their content is executed, and the TLB entries that these get."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.watching.page_watchers import CodeWatcher
from kinst.runtime.paging.walker import Access, Permission

# Plain numbers: there are thousands of misses a second, and enum flags are slow.
_EXECUTE, _READ, _WRITE = int(Permission.EXECUTE), int(Permission.READ), int(Permission.WRITE)
_PAGE_SHIFT: Final = 12


class WatchedPages:
    """The pages of one `CodeWatcher`; there can be one."""

    def __init__(self, note_code: Callable[[int], None]) -> None:
        """Nobody watches. `note_code` is called with a page that is executed as it is for the first time."""
        self._watcher: CodeWatcher | None = None
        self._note_code = note_code
        self._executed: set[int] = set()
        self.pages: frozenset[int] = frozenset()

    def watch(self, watcher: CodeWatcher) -> None:
        """Take over its pages, which may be others than before."""
        self._watcher, self.pages = watcher, watcher.pages

    def is_free(self) -> bool:
        """Whether nobody watches."""
        return self._watcher is None

    def has(self, physical: int) -> bool:
        """Whether an address is in a watched page."""
        return physical >> _PAGE_SHIFT in self.pages

    def grant(self, address: int, physical: int, permissions: int, access: Access) -> tuple[int, int]:
        """A TLB entry of a watched page: for fetches, loads or stores only, since the watcher must see the first of
        each."""
        assert self._watcher is not None
        page = physical >> _PAGE_SHIFT
        if access is Access.FETCH:
            frame = self._watcher.frame(page, address)
            if frame == page and page not in self._executed:
                self._executed.add(page)
                self._note_code(page)
            return frame << _PAGE_SHIFT | physical & 0xFFF, _EXECUTE
        if access is Access.WRITE:
            self._watcher.written(page)
            return physical, permissions & (_READ | _WRITE)
        self._watcher.read(page)
        return physical, permissions & _READ

    def words(self, page: int, access: Access) -> tuple[int, ...]:
        """What an entry of a page depends on besides the guest's tables, as `PhysicalMemory.origins` has it."""
        if page not in self.pages or self._watcher is None or access is Access.READ:
            return ()
        return (self._watcher.asks(page), 0) if access is Access.FETCH else (self._watcher.opened(page), 1)

    def real(self, physical: int) -> int:
        """See `CodeWatcher.real`."""
        return physical if self._watcher is None else self._watcher.real(physical)
