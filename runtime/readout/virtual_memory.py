"""Memory that is somewhere else, by the virtual addresses of the image in it: for typed values."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.readout.image_place import ImagePlace
from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.runtime.readout.page_tables import PageTables, page_tables
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.image import Image

_PAGE: Final = 4096
_STRING: Final = 256  # bytes of a text that are read at a time
Read = Callable[[int, int], bytes]


class VirtualMemory:
    """Implements `kinst.runtime.typed.view.Reads`. Where memory has virtual addresses they are read first: a stub has
    those of its CPU. Else, or where that has nothing, by the tables of Linux, or by where the image's own parts are."""

    def __init__(self, image: Image, memory: Memory, name: str, bias: int | None) -> None:
        """`bias`: how far the image's virtual addresses are from its link addresses; None: it is searched for.

        Raises:
            AbsentError: the image is not in this memory.
            MachineError: memory cannot be read.
        """
        self._memory = memory
        self._own = ImagePlace(image, memory, name)
        place, self._tables = self._own.place, None
        found = bias or 0
        if place.space is Space.VIRTUAL:
            found = place.distance
        else:
            self._tables = page_tables(image, memory, self._own.address, bias)
            found = found if self._tables is None else self._tables.bias
        self.bias = found

    @property
    def tables(self) -> PageTables | None:
        """The kernel's page tables; None: only what the image loads has addresses, or memory has virtual ones."""
        return self._tables

    def read(self, address: int, size: int) -> bytes:
        """See `Reads`."""
        pieces, at, end = list[bytes](), address, address + size
        while at < end:
            step = min(end - at, _PAGE - at % _PAGE)
            pieces.append(self._in_page(at, step))
            at += step
        return b"".join(pieces)

    def string(self, address: int, limit: int) -> bytes:
        """See `Reads`."""
        found, at = b"", address
        while len(found) < limit:
            piece = self._in_page(at, min(_STRING, limit - len(found), _PAGE - at % _PAGE))
            text, nul, _ = piece.partition(b"\0")
            found += text
            if nul:
                break
            at += len(piece)
        return found

    def _in_page(self, address: int, size: int) -> bytes:
        if Space.VIRTUAL in self._memory.spaces:
            try:
                return self._memory.read(Space.VIRTUAL, address, size)
            except UnreadableError:
                pass
        physical = self._physical(address)
        try:
            if physical is not None:
                return self._memory.read(Space.PHYSICAL, physical, size)
        except UnreadableError:
            pass
        raise Fault(FaultKind.BADADDR, address)

    def _physical(self, address: int) -> int | None:
        if Space.PHYSICAL not in self._memory.spaces:
            return None
        if self._tables is not None and (found := self._tables.physical(address)) is not None:
            return found
        return self._own.address(address - self.bias) if self._own.place.space is Space.PHYSICAL else None
