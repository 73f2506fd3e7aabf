"""Files of memory: an ELF core, or the bytes from one address on."""

import os
import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.targets.elf.core import AT_ENTRY, AT_PHDR, Core, MappedFile
from kinst.targets.elf.file import map_file
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.elf.sections import Segment
from kinst.targets.image import Image

Range = tuple[int, int, int]  # an address, a size, and the offset in the file
_FIRST: Final = 0x200  # bytes: the ELF header, and what tells one program from others of its size
_CHUNK: Final = 1 << 24  # bytes of a file that are searched at a time


class RawDump:
    """Bytes of memory in a file, as QEMU's pmemsave and memsave write them, or as a QEMU that runs has them
    (memory-backend-file). Both `Source` and `Memory`.

    It is read and not mapped: to read a hole of a mapped file in memory would fill it, and QEMU's has many.
    """

    is_slow = False
    is_live = True

    def __init__(self, name: str, descriptor: int, ranges: Sequence[Range], spaces: Sequence[Space]) -> None:
        """Takes the descriptor, and closes it in the end. `spaces` are those of the addresses in `ranges`."""
        self.name, self.spaces = name, spaces
        self._descriptor, self._ranges = descriptor, ranges
        weakref.finalize(self, os.close, descriptor)

    def open(self) -> AbstractContextManager[Memory]:
        """See `Source`."""
        return nullcontext(self)

    def read(self, space: Space, address: int, size: int) -> bytes:
        """See `Memory`."""
        for start, length, offset in self._ranges:
            if space in self.spaces and start <= address <= address + size <= start + length:
                found = os.pread(self._descriptor, size, address - start + offset)
                if len(found) == size:
                    return found
        there = ", ".join(f"{start:#x} to {start + length:#x}" for start, length, _ in self._ranges)
        raise UnreadableError(f"{self.name}: has {there}, and not {size} bytes at {address:#x}")

    def find(self, content: bytes) -> Iterator[int]:
        """See `Memory`."""
        for start, length, offset in self._ranges:
            for first, end in _extents(self._descriptor, offset, offset + length):
                for at in range(first, end, _CHUNK):
                    chunk = os.pread(self._descriptor, min(_CHUNK + len(content) - 1, end - at), at)
                    yield from (start + at + found - offset for found in _places(chunk, content))


def raw_dump(text: str, path: Path, address: int) -> RawDump:
    """The bytes of a file, from an address on: whether that is physical or virtual they do not say. Raises ImageError:
    it is not a regular file."""
    size = len(map_file(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return RawDump(text, descriptor, [(address, size, 0)], (Space.PHYSICAL, Space.VIRTUAL))


def _extents(descriptor: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are no holes."""
    while start < end:
        try:
            first = os.lseek(descriptor, start, os.SEEK_DATA)
        except OSError:  # there are no more
            return
        start = min(os.lseek(descriptor, first, os.SEEK_HOLE), end)
        yield first, start


class CoreDump:
    """An ELF core. Both `Source` and `Memory`."""

    def __init__(self, path: Path, core: Core) -> None:
        self.name = str(path)
        self.spaces = (Space.VIRTUAL,) if core.is_of_process else (Space.PHYSICAL, Space.VIRTUAL)
        self.is_slow = self.is_live = False
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
                start = row["load_address" if Space.PHYSICAL in self.spaces else "address"]
                yield int(start) + offset - int(row["offset"])

    def distances(self, image: Image) -> Iterator[int]:
        """How far a process may have an image from its link addresses, by what the core says of it: where files were
        mapped as a loader maps this one, and where the program begins. Its first bytes are there, if any are: gdb and
        Linux keep them of each file, to tell what it was."""
        loads = [one for one in image.segments if one.kind == PT_LOAD and one.file_size]
        by_path = defaultdict[PurePosixPath, list[MappedFile]](list)
        for one in self._core.files:
            by_path[one.path].append(one)
        for path, parts in by_path.items():
            is_named = path.name == image.path.name  # the process may have run elsewhere
            yield from (
                one for one in _distances_of(parts, loads) if self._begins(loads[0], image, one, unknown=is_named)
            )
        auxiliary, table = self._core.auxiliary, _table_address(image)
        if table is not None and AT_ENTRY in auxiliary:
            distance = auxiliary[AT_ENTRY] - image.entry
            if auxiliary.get(AT_PHDR) == table + distance and self._begins(loads[0], image, distance, unknown=True):
                yield distance

    def _begins(self, first: Segment, image: Image, distance: int, *, unknown: bool) -> bool:
        """Whether the first bytes of an image are there; `unknown`: the answer if no bytes are."""
        wanted = image.data[first.offset : first.offset + min(first.file_size, _FIRST)].tobytes()
        try:
            return self.read(Space.VIRTUAL, first.address + distance, len(wanted)) == wanted
        except UnreadableError:
            return unknown


def _table_address(image: Image) -> int | None:
    """The link address of the program headers, if they are loaded."""
    at = image.header.phoff
    loads = (one for one in image.segments if one.kind == PT_LOAD and one.offset <= at < one.offset + one.file_size)
    return next((one.address + at - one.offset for one in loads), None)


def _distances_of(parts: Sequence[MappedFile], loads: Sequence[Segment]) -> Iterator[int]:
    """Where each of the segments is in a part of the file that begins and ends as it does."""
    first = loads[0]
    for start in {one.start + first.offset - one.offset for one in parts if one.offset <= first.offset}:
        distance = start - first.address
        if all(any(_is_in(one, load, distance) for one in parts) for load in loads):
            yield distance


def _is_in(part: MappedFile, load: Segment, distance: int) -> bool:
    """Whether a part of a file has the first byte of a segment where it is to be."""
    address = load.address + distance
    return part.start <= address < part.end and address - part.start + part.offset == load.offset


def _offsets(data: NDArray[np.uint8], content: bytes) -> Iterator[int]:
    """The offsets of `content` in a file, which may be larger than memory."""
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK + len(content) - 1].tobytes()
        yield from (start + at for at in _places(chunk, content))


def _places(chunk: bytes, content: bytes) -> Iterator[int]:
    at = chunk.find(content)
    while at >= 0:
        yield at
        at = chunk.find(content, at + 1)
