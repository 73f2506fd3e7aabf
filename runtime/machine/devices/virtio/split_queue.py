"""A split virtqueue in guest memory -> chains of buffers. The guest writes all of it: everything is checked.

The three areas, little-endian (virtio 1.2, 2.7.5, 2.7.6 and 2.7.8):

    descriptors   address 8, length 4, flags 2, next 2        of each buffer
    driver's      flags 2, index 2, heads of chains 2 each    what is available
    device's      flags 2, index 2, (head 4, written 4) each  what was used
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from kinst.runtime.machine.machine import Memory
from kinst.targets.values import dataclass

_DESCRIPTOR: Final = struct.Struct("<QIHH")
_LONGEST: Final = 0xFFFF_FFFF  # bytes of a chain (virtio 1.2, 2.7.5), all of which a device can say that it wrote
_WORD: Final = 0xFFFF_FFFF
_NEXT, _WRITE, _INDIRECT = 1, 2, 4
_NO_INTERRUPT: Final = 1
_INDEX, _RING = 2, 4  # offsets in both rings
DESCRIPTORS, DRIVER, DEVICE = range(3)


class BrokenQueueError(Exception):
    """The guest's driver breaks a rule: nothing in the queue can be trusted."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What a driver makes available at once: buffers that the device reads, and buffers that it writes."""

    head: int
    readable: tuple[memoryview, ...]
    writable: tuple[memoryview, ...]

    @property
    def size(self) -> int:
        """Bytes of all buffers. They may refer to the same memory many times."""
        return sum(map(len, self.readable + self.writable))


def pieces(buffers: Iterable[memoryview], size: int) -> Iterator[list[memoryview]]:
    """Buffers in their order, divided into parts of `size` bytes; the last may have less."""
    part, left = list[memoryview](), size
    for buffer in buffers:
        rest = buffer
        while rest:
            part.append(rest[:left])
            rest, left = rest[left:], left - len(part[-1])
            if not left:
                yield part
                part, left = [], size
    if part:
        yield part


class SplitQueue:
    """A queue of a device. Through its transport the driver sets its size and its addresses, and makes it ready."""

    def __init__(self, memory: Memory, maximum: int) -> None:
        """`maximum`: the entries that it has at most, a power of 2."""
        self._memory = memory
        self.maximum = maximum
        self.reset()

    def reset(self) -> None:
        """Forget what the driver has set."""
        self.size = self.maximum
        self.areas = [0, 0, 0]  # physical addresses of `DESCRIPTORS`, `DRIVER` and `DEVICE`
        self.is_ready = False
        self._taken = self._used = 0  # indices of the rings, which wrap at 65536 and not at the size

    def resize(self, size: int) -> None:
        """Set the size, unless it is invalid."""
        if not self.is_ready and 1 <= size <= self.maximum and not size & size - 1:
            self.size = size

    def make_ready(self, *, is_ready: bool) -> None:
        """Let the driver make the queue ready, or stop it."""
        self.is_ready = is_ready

    def place(self, area: int, half: int, value: int) -> None:
        """Set 32 bits of the address of an area: half 0 or 1."""
        if not self.is_ready and half < 2:
            self.areas[area] = self.areas[area] & ~(_WORD << 32 * half) | value << 32 * half

    def take(self) -> Chain | None:
        """The next chain that is available, or None.

        Raises:
            BrokenQueueError: a number in the queue is invalid.
            MachineError: an address has no memory.
        """
        ring = self.areas[DRIVER]
        available = self._memory.load(ring + _INDEX, 2) - self._taken & 0xFFFF
        if not available:
            return None
        if available > self.size:
            raise BrokenQueueError(f"{available} chains in a queue of {self.size}")
        head = self._memory.load(ring + _RING + 2 * (self._taken % self.size), 2)
        self._taken = self._taken + 1 & 0xFFFF
        return self._chain(head)

    def give_back(self, chain: Chain, written: int) -> None:
        """Return a chain to the driver, with the number of bytes written. Raises MachineError."""
        ring = self.areas[DEVICE]
        entry = ring + _RING + 8 * (self._used % self.size)
        self._memory.store(entry, 4, chain.head)
        self._memory.store(entry + 4, 4, written)
        self._used = self._used + 1 & 0xFFFF
        self._memory.store(ring + _INDEX, 2, self._used)  # last: the driver reads entries up to it

    def wants_interrupt(self) -> bool:
        """Whether the driver has not suppressed the interrupt. Raises MachineError."""
        return not self._memory.load(self.areas[DRIVER], 2) & _NO_INTERRUPT

    def _chain(self, head: int) -> Chain:
        readable, writable = list[memoryview](), list[memoryview]()
        for address, size, flags in self._descriptors(head):
            is_written = bool(flags & _WRITE)
            if not size or (writable and not is_written):
                raise BrokenQueueError(f"the buffer at {address:#x} is empty, or to be read behind one to be written")
            view = self._memory.view(address, size, is_written=is_written)
            (writable if is_written else readable).append(view)
        chain = Chain(head, tuple(readable), tuple(writable))
        if chain.size > _LONGEST:
            raise BrokenQueueError(f"a chain of {chain.size} bytes")
        return chain

    def _descriptors(self, index: int) -> Iterator[tuple[int, int, int]]:
        """Address, size and flags of a chain's buffers. A chain with more of them than the queue has is a loop."""
        table, is_indirect = self._table(self.areas[DESCRIPTORS], self.size), False
        for _ in range(self.size + 1):
            if index >= len(table) // _DESCRIPTOR.size:
                raise BrokenQueueError(f"descriptor {index} of {len(table) // _DESCRIPTOR.size}")
            address, size, flags, index = _DESCRIPTOR.unpack_from(table, index * _DESCRIPTOR.size)
            if flags & _INDIRECT:
                if is_indirect or flags & _NEXT or not size or size % _DESCRIPTOR.size:
                    raise BrokenQueueError(f"a table of {size} bytes at {address:#x} that goes on, or is in another")
                table, is_indirect = self._table(address, min(size // _DESCRIPTOR.size, self.size)), True
                index = 0
                continue
            yield address, size, flags
            if not flags & _NEXT:
                return
        raise BrokenQueueError(f"a chain of more than {self.size} buffers")

    def _table(self, address: int, entries: int) -> memoryview:
        return self._memory.view(address, entries * _DESCRIPTOR.size, is_written=False)
