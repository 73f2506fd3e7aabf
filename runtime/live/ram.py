"""A guest's RAM that QEMU shares with us -> memory that can be read while the guest runs, and after QEMU has ended.

`info mtree -f` of QEMU's monitor says which physical addresses the file backs, and from which offset.
"""

import mmap
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from kinst.runtime.readout.files import Range
from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.targets.errors import MachineError
from kinst.targets.standalone import WORD

NAME: Final = "kinst-ram"  # the memory backend's
_VIEW: Final = "memory"  # the address space in which devices and loaders see RAM
_MAIN: Final = 16  # times smaller than the largest of its ranges are those worth telling
_RANGE: Final = r"^ +([0-9a-f]+)-([0-9a-f]+) \(prio -?\d+, ram\): (?:/objects/)?{}(?: @([0-9a-f]+))?(?: |$)"


class SharedRam:
    """The file, which has no name and ends with the last process that has it open; implements `Source` and `Memory` of
    `kinst.runtime.readout.memory`."""

    name = "the guest's memory"
    spaces: Sequence[Space] = (Space.PHYSICAL,)
    is_slow = False

    def __init__(self, size: int) -> None:
        """`size` bytes, all zero. Raises MachineError: the host has not enough memory."""
        self.size = size
        self.descriptor = os.memfd_create("kinst-ram", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.descriptor, size)
            self._map = mmap.mmap(self.descriptor, size, mmap.MAP_SHARED)
        except OSError as error:
            os.close(self.descriptor)
            raise MachineError(f"no {size >> 20:,} MiB for the guest's memory: {error.strerror}") from None
        self._ranges: tuple[Range, ...] = ()

    def place(self, tree: str) -> None:
        """Find its physical addresses in the output of `info mtree -f`. Raises MachineError: it has none."""
        self._ranges = tuple(ranges_of(tree, NAME))
        if not self._ranges:
            raise MachineError("QEMU has not put this machine's memory into the file that it was given")

    @property
    def start(self) -> int:
        """Its lowest physical address."""
        return min(address for address, _, _ in self._ranges)

    @property
    def where(self) -> str:
        """Its physical addresses as text, but for what is left between devices."""
        least = max(length for _, length, _ in self._ranges) // _MAIN
        main = sorted((start, length) for start, length, _ in self._ranges if length >= least)
        return ", ".join(f"{start:#x}-{start + length - 1:#x}" for start, length in main)

    def holds(self, address: int, size: int) -> bool:
        """Whether all bytes at a physical address are its."""
        return any(start <= address and address + size <= start + length for start, length, _ in self._ranges)

    def close(self) -> None:
        """Unmap and close the file."""
        if self.descriptor >= 0:
            self._map.close()
            os.close(self.descriptor)
            self.descriptor = -1

    def open(self) -> AbstractContextManager[Memory]:
        """See `Source`."""
        return nullcontext(self)

    def read(self, space: Space, address: int, size: int) -> bytes:
        """See `Memory`."""
        at = self._offset(space, address, size)
        return self._map[at : at + size]

    def _offset(self, space: Space, address: int, size: int) -> int:
        for start, length, offset in self._ranges:
            if space is Space.PHYSICAL and start <= address and address + size <= start + length:
                return address - start + offset
        raise UnreadableError(
            f"{self.name} is at {self.where}: there are no {size} bytes at {space.value} address {address:#x}"
        )

    def write(self, address: int, data: bytes) -> None:
        """Store bytes at a physical address, while the guest is paused. Raises UnreadableError: see `read`."""
        os.pwrite(self.descriptor, data, self._offset(Space.PHYSICAL, address, len(data)))

    def store(self, address: int, word: int) -> None:
        """Store a word of 64 bits at a physical address, a multiple of its size, in one access: the guest runs. Raises
        UnreadableError: see `read`."""
        at = self._offset(Space.PHYSICAL, address, WORD)
        with memoryview(self._map) as whole, whole[at : at + WORD] as its_bytes, its_bytes.cast("Q") as words:
            words[0] = word

    def find(self, content: bytes) -> Iterator[int]:
        """See `Memory`. What was never stored to is not looked at: that would take memory of the host."""
        for start, length, offset in self._ranges:
            for first, last in self._stored(offset, offset + length, len(content)):
                at = first
                while (at := self._map.find(content, at, last)) >= 0:
                    yield start + at - offset
                    at += 1

    def _stored(self, at: int, end: int, margin: int) -> Iterator[tuple[int, int]]:
        """The parts between two offsets that were stored to, each with so many zeros around it; one piece where these
        touch."""
        first = last = at
        while last < end and (start := self._seek(last, os.SEEK_DATA, end)) < end:
            if max(start - margin, at) > last:
                if first < last:
                    yield first, last
                first = max(start - margin, at)
            last = min(self._seek(start, os.SEEK_HOLE, end) + margin, end)
        if first < last:
            yield first, last

    def _seek(self, at: int, kind: int, end: int) -> int:
        """The next offset with data, or without (lseek(2)); `end` if there is none before."""
        try:
            return min(os.lseek(self.descriptor, at, kind), end)
        except OSError:  # ENXIO: nothing follows
            return end


def ranges_of(tree: str, name: str) -> Iterator[Range]:
    """Where `info mtree -f` has the memory of a backend."""
    is_wanted, expression = False, re.compile(_RANGE.format(re.escape(name)))
    for line in tree.splitlines():
        if line.startswith("FlatView"):
            is_wanted = False
        elif line.startswith(f' AS "{_VIEW}"'):
            is_wanted = True
        elif is_wanted and (found := expression.match(line)):
            first, last, offset = (int(text or "0", 16) for text in found.groups())
            yield first, last - first + 1, offset
