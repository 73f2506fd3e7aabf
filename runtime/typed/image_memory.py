"""The memory that an image begins with: what its file has, zeros where it has none, by link addresses."""

from typing import Final

from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image

_LONGEST: Final = 256  # bytes of a text that are read at a time


class ImageMemory:
    """Implements `kinst.runtime.typed.view.Reads`."""

    def __init__(self, image: Image) -> None:
        """Nothing is read yet."""
        self._data, self._parts = image.data, image.in_file
        loads = [one for one in image.segments if one.kind == PT_LOAD]
        self._zeros = [(one.address + one.file_size, one.address + one.size) for one in loads]

    def read(self, address: int, size: int) -> bytes:
        """See `Reads`."""
        pieces, at, end = list[bytes](), address, address + size
        while at < end:
            piece = self._piece(at, end - at)
            if not piece:
                raise Fault(FaultKind.BADADDR, at)
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def string(self, address: int, limit: int) -> bytes:
        """See `Reads`."""
        pieces, at, left = list[bytes](), address, limit
        while left > 0:
            piece = self._piece(at, min(left, _LONGEST))
            if not piece:
                raise Fault(FaultKind.BADADDR, at)
            text, nul, _ = piece.partition(b"\0")
            pieces.append(text)
            if nul:
                break
            at, left = at + len(piece), left - len(piece)
        return b"".join(pieces)

    def _piece(self, address: int, size: int) -> bytes:
        """The bytes of the part that has an address; empty: none has."""
        for start, offset, length in self._parts:
            if start <= address < start + length:
                first = offset + address - start
                return self._data[first : first + min(size, start + length - address)].tobytes()
        for start, end in self._zeros:
            if start <= address < end:
                return bytes(min(size, end - address))
        return b""
