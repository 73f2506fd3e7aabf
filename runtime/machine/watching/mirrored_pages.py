"""Pages of RAM whose loads and stores are told of: their translations lead to a window, which accesses the RAM.

Other pages are accessed as ever. What is watched are physical addresses, so that an access by any virtual one counts,
and accesses of the CPUs only: not those of devices, nor a walk of the guest's tables.
"""

from collections.abc import Callable
from typing import Protocol

from kinst.runtime.machine.physical.frames import MIRROR, MIRROR_SIZE, PAGE
from kinst.runtime.paging.walker import Access, Permission
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

_READ, _READ_WRITE = int(Permission.READ), int(Permission.READ | Permission.WRITE)


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """A load or store of a watched page."""

    access: Access
    address: int  # physical
    size: int  # bytes
    value: int  # that is loaded or is to be stored
    before: int  # what was there


MemoryWatcher = Callable[[MemoryAccess], None]


class Ram(Protocol):
    """The RAM behind the window."""

    @property
    def code_pages(self) -> set[int]:
        """The pages that instructions were fetched from."""
        ...

    def load(self, address: int, size: int) -> int:
        """A word."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Store a word of data."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write what may be code."""
        ...


class MirroredPages:
    """The watched pages of one machine; also the window that stands for them."""

    def __init__(self, memory: Ram) -> None:
        """None is watched."""
        self._memory = memory
        self._watchers: list[tuple[range, Access, MemoryWatcher]] = []
        self._numbers: dict[int, int] = {}  # of the window's pages, by physical page
        self._pages: list[int] = []
        self._loaded: set[int] = set()  # pages whose loads are watched, not only stores

    def watch(self, addresses: range, access: Access, watcher: MemoryWatcher) -> None:
        """Call `watcher` with each access of a kind to physical addresses. Raises MachineError: there are too many."""
        for page in range(addresses.start // PAGE, (addresses.stop - 1) // PAGE + 1):
            if page not in self._numbers:
                if len(self._pages) == MIRROR_SIZE // PAGE:
                    raise MachineError(f"more than {MIRROR_SIZE // PAGE} pages of memory are watched")
                self._numbers[page] = len(self._pages)
                self._pages.append(page)
        self._watchers.append((addresses, access, watcher))
        self._note_loaded()

    def unwatch(self, watcher: MemoryWatcher) -> None:
        """Call it no more, for any addresses."""
        self._watchers = [one for one in self._watchers if one[2] != watcher]
        kept = {page for page in self._pages if any(_overlap(one[0], page * PAGE, PAGE) for one in self._watchers)}
        self._numbers = {page: number for page, number in self._numbers.items() if page in kept}
        self._note_loaded()

    def _note_loaded(self) -> None:
        loads = [addresses for addresses, access, _ in self._watchers if access is Access.READ]
        self._loaded = {page for page in self._numbers if any(_overlap(one, page * PAGE, PAGE) for one in loads)}

    def granted(self, granted: tuple[int, int], access: Access) -> tuple[int, int]:
        """The translation for a load or store, given the one to RAM. Where only stores are watched, loads stay as fast
        as they are up to the first store."""
        page = granted[0] // PAGE
        number = self._numbers.get(page)
        if number is None or access is Access.FETCH:
            return granted
        if access is Access.READ and page not in self._loaded:
            return granted[0], granted[1] & _READ
        return MIRROR + number * PAGE | granted[0] % PAGE, granted[1] & _READ_WRITE

    def real(self, frame: int) -> int:
        """The RAM's address for one in the window; any other as it is."""
        offset = frame - MIRROR
        return self._pages[offset // PAGE] * PAGE | offset % PAGE if 0 <= offset < MIRROR_SIZE else frame

    # -- the window ---------------------------------------------------------------------------------------------------

    def read(self, offset: int, size: int) -> int:
        """A load by an instruction, at an offset in the window."""
        address = self.real(MIRROR + offset)
        value = self._memory.load(address, size)
        self._tell(Access.READ, address, size, value, value)
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        """A store by an instruction, at an offset in the window."""
        address = self.real(MIRROR + offset)
        self._tell(Access.WRITE, address, size, value, None)
        if address // PAGE in self._memory.code_pages:
            self._memory.write(address, value.to_bytes(size, "little"))
        else:
            self._memory.store(address, size, value)

    def _tell(self, access: Access, address: int, size: int, value: int, before: int | None) -> None:
        for addresses, kind, watcher in self._watchers:
            if kind is access and _overlap(addresses, address, size):
                known = self._memory.load(address, size) if before is None else before
                watcher(MemoryAccess(access, address, size, value, known))


def _overlap(addresses: range, start: int, size: int) -> bool:
    return start < addresses.stop and addresses.start < start + size
