"""Files of memory: an ELF core, or the bytes from one address on."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.targets.elf.core import Core

_CHUNK: Final = 1 << 24  # bytes of a file that are searched at a time


class RawDump:
    """Bytes of memory from one address on, as QEMU's pmemsave and memsave write them: whether that address is physical
    or virtual they do not say. Both `Source` and `Memory`."""

    def __init__(self, path: Path, data: NDArray[np.uint8], address: int) -> None:
        self.name = str(path)
        self.spaces = (Space.PHYSICAL, Space.VIRTUAL)
        self.is_slow = False
        self._data, self._address = data, address

    def open(self) -> AbstractContextManager[Memory]:
        """See `Source`."""
        return nullcontext(self)

    def read(self, space: Space, address: int, size: int) -> bytes:
        """See `Memory`."""
        start, end = self._address, self._address + len(self._data)
        if not start <= address <= address + size <= end:
            raise UnreadableError(f"{self.name}: has {start:#x} to {end:#x}, and not {size} bytes at {address:#x}")
        return self._data[address - start : address - start + size].tobytes()

    def find(self, content: bytes) -> Iterator[int]:
        """See `Memory`."""
        for offset in _offsets(self._data, content):
            yield self._address + offset


class CoreDump:
    """An ELF core. Both `Source` and `Memory`."""

    def __init__(self, path: Path, core: Core) -> None:
        self.name = str(path)
        self.spaces = (Space.PHYSICAL, Space.VIRTUAL)
        self.is_slow = False
        self._core = core

    def open(self) -> AbstractContextManager[Memory]:
        """See `Source`."""
        return nullcontext(self)

    def read(self, space: Space, address: int, size: int) -> bytes:
        """See `Memory`."""
        pieces = []
        at, left = address, size
        while left > 0:
            piece = self._piece(space, at, left)
            if not piece:
                raise UnreadableError(f"{self.name}: has nothing at {space.value} address {at:#x}")
            pieces.append(piece)
            at, left = at + len(piece), left - len(piece)
        return b"".join(pieces)

    def _piece(self, space: Space, address: int, size: int) -> bytes:
        """The bytes of the first piece that has the address; empty: none has."""
        loads, data = self._core.loads, self._core.data
        starts = loads["load_address" if space is Space.PHYSICAL else "address"]
        if address >> 64:
            return b""
        distances = np.uint64(address) - starts  # below the start it wraps round: not less
        found = np.flatnonzero((distances < loads["file_size"]) & (loads["offset"] + distances < len(data)))
        if not len(found):
            return b""
        row, distance = loads[found[0]], int(distances[found[0]])
        start = int(row["offset"]) + distance
        return data[start : start + min(size, int(row["file_size"]) - distance)].tobytes()

    def find(self, content: bytes) -> Iterator[int]:
        """See `Memory`."""
        loads = self._core.loads
        for offset in _offsets(self._core.data, content):
            distances = np.uint64(offset) - loads["offset"]
            for row in loads[distances < loads["file_size"]][:1]:
                yield int(row["load_address"]) + offset - int(row["offset"])


def _offsets(data: NDArray[np.uint8], content: bytes) -> Iterator[int]:
    """The offsets of `content` in a file, which may be larger than memory."""
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK + len(content) - 1].tobytes()
        at = chunk.find(content)
        while at >= 0:
            yield start + at
            at = chunk.find(content, at + 1)
