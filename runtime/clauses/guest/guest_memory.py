"""Memory as clauses see it: the guest's, read without side effects on the guest, and D's own scratch memory."""

from collections.abc import Callable
from typing import Final, NoReturn, Protocol

from kinst.runtime.clauses.scratch import TAG, Scratch
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.errors import MachineError

_PAGE: Final = 4096
_WORD: Final = (1 << 64) - 1
_MASKS: Final = tuple((1 << 8 * size) - 1 for size in range(9))
Translate = Callable[[int], int | None]  # virtual address -> physical one; None: nothing is mapped there


class Ram(Protocol):
    """Physical memory, as `kinst.runtime.machine.memory.PhysicalMemory` has it. Raises MachineError where no RAM is."""

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of `size` bytes."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes from an address on."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write bytes. Code among them is translated again."""
        ...


class GuestMemory:
    """Implements `kinst.runtime.clauses.environment.Memory`. Devices are never accessed, since reading a device
    register may change the device: a page that is not RAM is BADADDR.

    `translate` and `translate_for_write` are those of the running CPU: `AddressSpace.observe` and
    `AddressSpace.observe_write`, which set no accessed or dirty bits in the guest's page tables.
    """

    def __init__(self, scratch: Scratch, translate: Translate, translate_for_write: Translate, ram: Ram) -> None:
        """`scratch` is D's own memory; the rest is the machine's."""
        self.scratch = scratch
        self._translate, self._translate_for_write = translate, translate_for_write
        self._ram, self._load = ram, ram.load

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of 1, 2, 4 or 8 bytes."""
        if address >> 48 == TAG:
            return self.scratch.load(address, size)
        if (address & 4095) + size > 4096:
            return int.from_bytes(self.read(address, size), "little")
        physical = self._translate(address)
        if physical is None:
            raise Fault(FaultKind.BADADDR, address)
        try:
            shift = (physical & 7) << 3
            if shift + 8 * size <= 64:  # aligned words of 8 bytes are the fastest to load
                return self._load(physical & -8, 8) >> shift & _MASKS[size]
            return self._load(physical, size)
        except MachineError:
            _bad(address)

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes; the fault has the first address that cannot be read."""
        if address >> 48 == TAG:
            return self.scratch.read(address, size)
        pieces = []
        while size > 0:
            step = min(size, _PAGE - (address & _PAGE - 1))
            pieces.append(self._read_in_page(address, step))
            address, size = address + step & _WORD, size - step
        return b"".join(pieces)

    def string(self, address: int, limit: int) -> bytes:
        """The bytes up to the NUL, without it, at most `limit`. A page after the NUL is not read: it may not be
        mapped."""
        if address >> 48 == TAG:
            return self.scratch.string(address, limit)
        pieces = []
        while limit > 0:
            step = min(limit, _PAGE - (address & _PAGE - 1))
            piece = self._read_in_page(address, step)
            end = piece.find(0)
            if end >= 0:
                pieces.append(piece[:end])
                break
            pieces.append(piece)
            address, limit = address + step & _WORD, limit - step
        return b"".join(pieces)

    def _read_in_page(self, address: int, size: int) -> bytes:
        physical = self._translate(address)
        if physical is None:
            _bad(address)
        try:
            return self._ram.read(physical, size)
        except MachineError:
            _bad(address)

    def store(self, address: int, size: int, value: int) -> None:
        """Store a word of `size` bytes into scratch memory. Raises Fault BADADDR for the guest's."""
        if address >> 48 != TAG:
            _bad(address)
        self.scratch.store(address, size, value)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes into scratch memory. Raises Fault BADADDR for the guest's."""
        if address >> 48 != TAG:
            _bad(address)
        self.scratch.write(address, data)

    def write_guest(self, address: int, data: bytes) -> None:
        """Write into the guest's memory. Nothing is written if a part of it cannot be."""
        places = []  # all pages are checked before the first is written
        at, done = address, 0
        while done < len(data):
            step = min(len(data) - done, _PAGE - (at & _PAGE - 1))
            places.append((self._writable(at, step), data[done : done + step]))
            at, done = at + step & _WORD, done + step
        for physical, piece in places:
            self._ram.write(physical, piece)

    def _writable(self, address: int, size: int) -> int:
        physical = self._translate_for_write(address)
        if physical is None:
            _bad(address)
        try:
            self._ram.read(physical, size)
        except MachineError:
            _bad(address)
        return physical


class _NoRam:
    """The RAM of a session without a machine. It is never accessed, since nothing is mapped."""

    def load(self, address: int, size: int) -> int:
        """Raises MachineError."""
        raise MachineError(f"no RAM at {address:#x} ({size:#x} bytes)")

    def read(self, address: int, size: int) -> bytes:
        """Raises MachineError."""
        raise MachineError(f"no RAM at {address:#x} ({size:#x} bytes)")

    def write(self, address: int, data: bytes) -> None:
        """Raises MachineError."""
        raise MachineError(f"no RAM at {address:#x} ({len(data):#x} bytes)")


def no_guest(scratch: Scratch) -> GuestMemory:
    """The memory of a session without a machine: every guest address is BADADDR."""
    return GuestMemory(scratch, _nowhere, _nowhere, _NoRam())


def _nowhere(_address: int) -> None:
    return None


def _bad(address: int) -> NoReturn:
    raise Fault(FaultKind.BADADDR, address) from None
