"""Images that come to be in memory while the guest runs -> a call when the first of their code is about to be executed.

Firmware loads, unpacks or copies what it starts. Whoever does it, a page that is executed for the first time misses the
TLB: that is when its bytes are compared. A page in which firmware itself was executed before need not miss it, so
stores to those are noted, and after one the page is asked about again, from when the engine runs the next time. What
is copied and entered without such a pause is noticed where the image begins.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kinst.runtime.machine.loading.linux_image import text_offset
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.patched.image_pages import ImagePages
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image

if TYPE_CHECKING:
    from kinst.runtime.engine.block_watch import BlockWatch
    from kinst.runtime.machine.system import System

_MOST_PAGES: Final = 1 << 13  # that are guarded
_MOST_STORES: Final = 64  # runs of the engine that store to a page, until it is guarded no more


@dataclass(slots=True, eq=False)
class Awaited:
    """An image that may arrive."""

    image: Image  # as it is in its file
    expected: int | None  # how far it is from its load addresses, if it was loaded by us
    arrived: Callable[[Loaded], None]
    pages: ImagePages = field(init=False)

    def __post_init__(self) -> None:
        self.pages = ImagePages(self.image)


class Arrivals:
    """Looks for them. An `Interlude`, and the guard of stores."""

    def __init__(self, system: "System", awaited: list[Awaited]) -> None:
        """Nothing is looked for before the machine runs."""
        self._system, self._memory, self.awaited = system, system.memory, awaited
        self._seen: set[int] = set()  # numbers of pages that were executed, and are none of theirs
        self._firmware: set[int] = set()  # pages that were executed where they are: what may load an image does
        self._is_guarded = True  # whether stores to all of these are noted
        self._stored: set[int] = set()  # those that were stored to in this run of the engine
        self._stores: Counter[int] = Counter()  # in how many runs each was
        self._entries: set[int] = set()  # watched addresses
        self._has_stopped = False  # the engine, for work that needs the CPU to stand still
        self._watch: BlockWatch | None = None
        system.space.on_executable(self._executable)
        system.attach_interlude(self)

    def _executable(self, address: int, physical: int, access: Access) -> None:
        page = physical // PAGE
        if access is not Access.FETCH or page in self._seen or not self.awaited:
            return
        if self._look(address & -PAGE, page * PAGE):
            return
        self._seen.add(page)
        if address // PAGE == page and len(self._firmware) < _MOST_PAGES:
            self._firmware.add(page)
            self._is_guarded = False
            self._stop()  # to guard it before it can be stored to

    def _look(self, address: int, page: int) -> bool:
        """Whether an image has arrived, of which a physical page is about to be executed at a virtual address."""
        for one in self.awaited:
            distance = one.pages.distance(page, self._memory, one.expected)
            if distance is not None:
                self.awaited.remove(one)
                one.arrived(_placed(one.image, distance, address - page))
                return True
        return False

    # -- pages that other code was executed in ------------------------------------------------------------------------

    def begin(self) -> None:
        """See `Interlude`."""
        if self._stored:
            self._seen -= self._stored
            self._system.space.ask_again()
        if self.awaited and (self._stored or not self._is_guarded):
            self._is_guarded = True
            self._system.space.guard(self._firmware, self)
        self._stored.clear()

    def ended(self) -> bool:
        """See `Interlude`."""
        has_stopped, self._has_stopped = self._has_stopped, False
        return has_stopped

    def _stop(self) -> None:
        self._has_stopped = True
        self._system.engine.stop()

    def is_own(self, _pc: int, page: int) -> bool:
        """See `StoreGuard`. All stores may go on."""
        if self.awaited and page not in self._stored:
            self._stored.add(page)
            self._stores[page] += 1
            if self._stores[page] > _MOST_STORES:  # data of the code in it, or a stack
                self._firmware.discard(page)
            self._watch_entries(page * PAGE)
        return True

    def stored(self, _pc: int, _address: int) -> None:
        """See `StoreGuard`: it is asked only about stores that `is_own` denies."""

    def _watch_entries(self, page: int) -> None:
        """Watch the places in a page where an image may begin."""
        if self._watch is None:
            self._watch = self._system.engine.watch_blocks(self._begins)
        for entry in {page + one.image.entry % PAGE for one in self.awaited} - self._entries:
            self._entries.add(entry)
            self._watch.add(entry)

    def _begins(self, address: int) -> None:
        """A block of code begins at a watched address. If it is an image's first, it is translated again."""
        page = address & -PAGE
        if self.awaited and page // PAGE in self._stored and self._is_physical(address) and self._look(page, page):
            self._stop()

    def _is_physical(self, address: int) -> bool:
        try:
            return self._system.space.physical(address, Access.FETCH) == address
        except PageFault:
            return False


def _placed(image: Image, distance: int, mapped: int) -> Loaded:
    """Where an image is.

    Args:
        image: the image.
        distance: of its physical addresses from its load addresses.
        mapped: of virtual addresses from physical ones, where it is entered.
    """
    segments = [one for one in image.segments if one.kind == PT_LOAD and one.size]
    first = min(segments, key=lambda one: one.load_address)
    # A kernel that is linked elsewhere than it is loaded maps itself to its link addresses.
    maps_itself = text_offset(image, first) is not None or any(one.address != one.load_address for one in segments)
    bias = 0 if maps_itself else distance + mapped
    placed = tuple((one.address + bias, one.load_address + distance, one.size) for one in segments)
    return Loaded(image, bias, image.entry + bias, placed)
