"""An image -> the memory that clauses may read though no guest is there: what nobody writes to."""

from typing import NoReturn

from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.elf.header import PF_W, PT_LOAD, SHF_ALLOC, SHF_WRITE, SHT_NOBITS
from kinst.targets.errors import MachineError
from kinst.targets.image import Image


class Constants:
    """The read-only bytes of an image's file; see `kinst.runtime.clauses.guest_memory.Ram`. Its physical addresses are
    link addresses."""

    def __init__(self, image: Image) -> None:
        self._image = image
        sections = [one for one in image.sections if one.flags & SHF_ALLOC and one.address]
        segments = [one for one in image.segments if one.kind == PT_LOAD and not one.flags & PF_W]
        self._places = [
            range(one.address, one.address + one.size)
            for one in sections
            if not one.flags & SHF_WRITE and one.kind != SHT_NOBITS
        ] or [range(one.address, one.address + one.file_size) for one in segments]

    def translate(self, address: int) -> int:
        """The address itself. Raises Fault: what is there is the guest's to change, and was not recorded."""
        if any(address in place for place in self._places):
            return address
        raise Fault(FaultKind.BADADDR, address, "memory that changes was not recorded")

    def load(self, address: int, size: int) -> int:
        """A little-endian word."""
        return int.from_bytes(self.read(address, size), "little")

    def read(self, address: int, size: int) -> bytes:
        """Bytes. Raises MachineError: they pass the end of what is constant."""
        place = next((one for one in self._places if address in one), range(0))
        if address + size > place.stop:
            raise MachineError(f"{size} bytes at {address:#x} are not constant")
        return self._image.read(address, size)

    def write(self, address: int, data: bytes) -> NoReturn:
        """Raises MachineError: nothing can be written to a guest that is elsewhere."""
        raise MachineError(f"{address:#x}: the guest is elsewhere")
