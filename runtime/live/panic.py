"""A guest's console and memory -> the end of the run when its kernel has panicked for good, as in our own machine.

Text on the console only starts the search: whether the kernel has panicked, its variables say (`PanicWatch`). They are
not looked at before, since it is not known where a kernel will be before it is there.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.readout.memory import Space, UnreadableError
from kinst.runtime.systems.registry import panic_of
from kinst.runtime.tracing.guests.panic_watch import SUSPICIOUS, PanicWatch, Watched, is_nameless, named
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image

_CONSTANT: Final = "linux_banner"  # a text of every Linux, which differs between any two builds and never changes
_COMPARED: Final = 32  # bytes of it
_APART: Final = 2 << 20  # bytes between places where a boot loader puts a kernel


class ConsolePanic:
    """Searches the console of one guest."""

    def __init__(self, prepared: Prepared) -> None:
        """Of an image that is not Linux, or with --on-panic continue, nothing is searched."""
        self._prepared = prepared
        self._tail = b""
        self._watch: PanicWatch | None = None

    def on_console(self, data: bytes, guest: Watched, ram: SharedRam) -> None:
        """The guest has printed something."""
        if self._watch is None and self._prepared.request.ends_on_panic:
            self._tail = (self._tail + data)[-len(SUSPICIOUS) - len(data) :]  # the text may arrive in pieces
            if SUSPICIOUS not in self._tail:
                return
            data, image = self._tail, self._prepared.original
            image = named(image) if is_nameless(image) else image
            signs_of = lambda image: panic_of(image, self._prepared.request.system)  # noqa: E731
            read = lambda address, size: ram.read(Space.PHYSICAL, address, size)  # noqa: E731
            self._watch = PanicWatch(guest, read, image, _physical(image, ram), signs_of)
        if self._watch is not None:
            self._watch.on_console(data)

    def check(self) -> None:
        """End the run if the kernel has panicked, and has printed all of its message."""
        if self._watch is not None:
            self._watch.check()


def _physical(image: Image, ram: SharedRam) -> Callable[[int], int | None]:
    """Gives physical addresses of a kernel's variables; None: it is nowhere in memory."""
    loads = [one for one in image.segments if one.kind == PT_LOAD and one.size]
    lowest = min(one.load_address for one in loads)

    def in_file(link: int) -> int | None:
        found = (one.load_address + link - one.address for one in loads if 0 <= link - one.address < one.size)
        return next(found, None)

    link = image.symbols.address_of(_CONSTANT)
    constant = None if link is None else in_file(link)
    if link is None or constant is None:
        return lambda _address: None
    content = image.read(link, _COMPARED)
    for start in range(ram.start, ram.start + ram.size, _APART):
        distance = start + lowest % _APART - lowest
        try:
            if ram.read(Space.PHYSICAL, constant + distance, _COMPARED) == content:
                return lambda address: None if (found := in_file(address)) is None else found + distance
        except UnreadableError:
            continue
    return lambda _address: None
