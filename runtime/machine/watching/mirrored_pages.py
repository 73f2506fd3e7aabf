"""Pages of RAM whose loads and stores are told of: their translations lead to a window, which accesses the RAM.

Other pages are accessed as ever. What is watched are physical addresses, so that an access by any virtual one counts,
and accesses of the CPUs only: not those of devices, nor a walk of the guest's tables.

In the same way a virtual page can be answered: 16-bit words in it may be seen as one more than what is in RAM, through
this page and no other.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kinst.runtime.machine.physical.frames import MIRROR, MIRROR_SIZE, PAGE
from kinst.runtime.paging.walker import Access, Permission
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

_MOST_ANSWERED: Final = 256
_FIRST_ANSWERED: Final = MIRROR_SIZE // PAGE - _MOST_ANSWERED
_WORD: Final = 2
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
Raised = Callable[[int, int], Sequence[int]]  # (physical address, bytes): the addresses of words there that are raised


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

    def __init__(self, memory: Ram, forget: Callable[[], None]) -> None:
        """None is watched. `forget` drops the translations that the machine has."""
        self._memory, self._forget = memory, forget
        self._watchers: list[tuple[range, Access, MemoryWatcher]] = []
        self._numbers: dict[int, int] = {}  # of the window's pages, by physical page
        self._pages: list[int] = []
        self._loaded: set[int] = set()  # pages whose loads are watched, not only stores
        self._raised: Raised = _none
        self._answered: frozenset[int] = frozenset()  # virtual pages
        self._own: dict[int, int] = {}  # numbers of the window's pages that are answered, by physical page
        self._answered_pages = [0] * _MOST_ANSWERED

    def watch(self, addresses: range, access: Access, watcher: MemoryWatcher) -> None:
        """Call `watcher` with each access of a kind to physical addresses. Raises MachineError: there are too many."""
        for page in range(addresses.start // PAGE, (addresses.stop - 1) // PAGE + 1):
            if page not in self._numbers:
                if len(self._pages) == _FIRST_ANSWERED:
                    raise MachineError(f"more than {_FIRST_ANSWERED} pages of memory are watched")
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

    def answer(self, pages: frozenset[int], raised: Raised) -> None:
        """Answer accesses through these virtual pages and no others: what `raised` gives is seen as one more."""
        self._answered, self._raised = pages, raised
        self._forget()

    def _note_loaded(self) -> None:
        self._forget()
        loads = [addresses for addresses, access, _ in self._watchers if access is Access.READ]
        self._loaded = {page for page in self._numbers if any(_overlap(one, page * PAGE, PAGE) for one in loads)}

    def granted(self, address: int, granted: tuple[int, int], access: Access) -> tuple[int, int]:
        """The translation of a virtual address for a load or store, given the one to RAM. Where only stores are
        watched, loads stay as fast as they are up to the first store."""
        page = granted[0] // PAGE
        if access is not Access.FETCH and address // PAGE in self._answered:
            return MIRROR + self._own_number(page) * PAGE | granted[0] % PAGE, granted[1] & _READ_WRITE
        number = self._numbers.get(page)
        if number is None or access is Access.FETCH:
            return granted
        if access is Access.READ and page not in self._loaded:
            return granted[0], granted[1] & _READ
        return MIRROR + number * PAGE | granted[0] % PAGE, granted[1] & _READ_WRITE

    def _own_number(self, page: int) -> int:
        """The number of an answered page in the window, which has the last ones for them. They are given again when
        none is left: a process that stores to a page gets a copy elsewhere."""
        if page not in self._own:
            if len(self._own) == _MOST_ANSWERED:
                self._own.clear()
                self._forget()
            self._own[page] = _FIRST_ANSWERED + len(self._own)
            self._answered_pages[self._own[page] - _FIRST_ANSWERED] = page
        return self._own[page]

    def real(self, frame: int) -> int:
        """The RAM's address for one in the window; any other as it is."""
        offset = frame - MIRROR
        if not 0 <= offset < MIRROR_SIZE:
            return frame
        number = offset // PAGE
        page = self._pages[number] if number < _FIRST_ANSWERED else self._answered_pages[number - _FIRST_ANSWERED]
        return page * PAGE | offset % PAGE

    # -- the window ---------------------------------------------------------------------------------------------------

    def read(self, offset: int, size: int) -> int:
        """A load by an instruction, at an offset in the window."""
        address = self.real(MIRROR + offset)
        value = self._memory.load(address, size)
        if offset >= _FIRST_ANSWERED * PAGE:
            value = self._seen(address, size, value)
        self._tell(Access.READ, address, size, value, value)
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        """A store by an instruction, at an offset in the window."""
        address = self.real(MIRROR + offset)
        self._tell(Access.WRITE, address, size, value, None)
        words = self._raised(address, size) if offset >= _FIRST_ANSWERED * PAGE else ()
        seen = [(word, self._memory.load(word, _WORD) + 1) for word in words]
        self._store(address, size, value)
        for word, before in seen:
            after = _laid(before, word, _WORD, value, address, size)
            self._store(word, _WORD, (after - 1) % (1 << 8 * _WORD))

    def _store(self, address: int, size: int, value: int) -> None:
        if address // PAGE in self._memory.code_pages:
            self._memory.write(address, value.to_bytes(size, "little"))
        else:
            self._memory.store(address, size, value)

    def _seen(self, address: int, size: int, value: int) -> int:
        """What a process sees of a value that is loaded."""
        for word in self._raised(address, size):
            value = _laid(value, address, size, (self._memory.load(word, _WORD) + 1) % (1 << 8 * _WORD), word, _WORD)
        return value

    def _tell(self, access: Access, address: int, size: int, value: int, before: int | None) -> None:
        for addresses, kind, watcher in self._watchers:
            if kind is access and _overlap(addresses, address, size):
                known = self._memory.load(address, size) if before is None else before
                watcher(MemoryAccess(access, address, size, value, known))


def _overlap(addresses: range, start: int, size: int) -> bool:
    return start < addresses.stop and addresses.start < start + size


def _none(_address: int, _size: int) -> Sequence[int]:
    """No word is raised."""
    return ()


def _laid(value: int, address: int, size: int, other: int, place: int, width: int) -> int:
    """The `size` bytes at an address, with those of another value laid over them where it has some."""
    found = bytearray((value % (1 << 8 * size)).to_bytes(size, "little"))
    for at, one in enumerate((other % (1 << 8 * width)).to_bytes(width, "little"), place - address):
        if 0 <= at < size:
            found[at] = one
    return int.from_bytes(found, "little")
