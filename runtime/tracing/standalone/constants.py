"""An image -> the memory that clauses may read without a guest: its read-only sections or segments."""

from collections.abc import Callable

from kinst.runtime.clauses.guest.guest_memory import no_guest
from kinst.runtime.clauses.scratch import TAG, Scratch
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.elf.header import PF_W, PT_LOAD, SHF_ALLOC, SHF_WRITE, SHT_NOBITS
from kinst.targets.image import Image


class ConstantMemory:
    """The read-only bytes of an image's file, and scratch memory; implements
    `kinst.runtime.clauses.environment.Memory`."""

    def __init__(self, image: Image, scratch: Scratch, link: Callable[[int], int] = lambda address: address) -> None:
        """`scratch` is D's own memory; `link` gives link addresses of the image that runs."""
        self._image, self._link = image, link
        self._own = no_guest(scratch)
        self.store, self.write, self.write_guest = self._own.store, self._own.write, self._own.write_guest
        sections = [one for one in image.sections if one.flags & SHF_ALLOC and one.address]
        segments = [one for one in image.segments if one.kind == PT_LOAD and not one.flags & PF_W]
        self._places = [
            range(one.address, one.address + one.size)
            for one in sections
            if not one.flags & SHF_WRITE and one.kind != SHT_NOBITS
        ] or [range(one.address, one.address + one.file_size) for one in segments]

    def load(self, address: int, size: int) -> int:
        """See `Memory`."""
        return int.from_bytes(self.read(address, size), "little")

    def read(self, address: int, size: int) -> bytes:
        """See `Memory`."""
        if address >> 48 == TAG:
            return self._own.read(address, size)
        if size > self._constant(address) or not size:
            raise _unknown(address)
        return self._image.read(self._link(address), size)

    def string(self, address: int, limit: int) -> bytes:
        """See `Memory`."""
        if address >> 48 == TAG or not limit:
            return self._own.string(address, limit)
        most = min(limit, self._constant(address))
        found, end, _ = self.read(address, most).partition(b"\0")
        if not end and most < limit:
            raise _unknown(address + most)
        return found

    def _constant(self, address: int) -> int:
        """How many bytes from an address on are read-only."""
        link = self._link(address)
        return next((place.stop - link for place in self._places if link in place), 0)


def _unknown(address: int) -> Fault:
    return Fault(FaultKind.BADADDR, address, "memory that changes was not recorded")
