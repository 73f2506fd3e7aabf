"""Physical memory: host buffers that Unicorn maps and that we read and write directly."""

import mmap
from dataclasses import dataclass

from kinst.runtime.qiling_machine import QilingMachine
from kinst.targets.errors import MachineError

PAGE = 4096


@dataclass(frozen=True, slots=True)
class Region:
    """RAM at [base, base + size)."""

    base: int
    size: int
    view: memoryview

    def holds(self, address: int, size: int = 1) -> bool:
        """Whether all of [address, address + size) lies inside."""
        return self.base <= address and address + size <= self.base + self.size


class PhysicalMemory:
    """See `kinst.runtime.machine.Memory`."""

    def __init__(self, engine: QilingMachine) -> None:
        self._engine = engine
        self.regions: list[Region] = []
        self.code_pages: set[int] = set()  # physical page numbers that instructions were fetched from
        self.is_code_stale = False  # code that may be translated already was changed: translate anew before running

    def add_ram(self, address: int, size: int) -> None:
        """Map RAM; both page-aligned. Pages cost nothing until they are used."""
        if address % PAGE or size % PAGE or size <= 0:
            raise MachineError(f"RAM at {address:#x}: its address and size ({size:#x}) must be multiples of {PAGE}")
        for region in self.regions:
            if address < region.base + region.size and region.base < address + size:
                raise MachineError(f"RAM at {address:#x}: overlaps RAM at {region.base:#x}")
        buffer = mmap.mmap(-1, size)
        self._engine.map_memory(address, buffer)
        self.regions.append(Region(address, size, memoryview(buffer)))

    def find(self, address: int, size: int = 1) -> Region | None:
        """The region that holds [address, address + size)."""
        for region in self.regions:
            if region.base <= address and address + size <= region.base + region.size:
                return region
        return None

    def read(self, address: int, size: int) -> bytes:
        """Bytes at a physical address."""
        region = self._region(address, size)
        start = address - region.base
        return bytes(region.view[start : start + size])

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Write bytes; code among them is translated anew."""
        region = self._region(address, len(data))
        start = address - region.base
        region.view[start : start + len(data)] = data
        if self.code_pages and not self.code_pages.isdisjoint(range(address >> 12, (address + len(data) + 4095) >> 12)):
            self.is_code_stale = True

    def load(self, address: int, size: int) -> int:
        """A little-endian word."""
        region = self.regions[0]
        start = address - region.base
        if start < 0 or start + size > region.size:
            region = self._region(address, size)
            start = address - region.base
        return int.from_bytes(region.view[start : start + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Store a little-endian word of data."""
        region = self.regions[0]
        start = address - region.base
        if start < 0 or start + size > region.size:
            region = self._region(address, size)
            start = address - region.base
        region.view[start : start + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        if address >> 12 in self.code_pages:
            self.is_code_stale = True

    def _region(self, address: int, size: int) -> Region:
        region = self.find(address, size)
        if region is None:
            raise MachineError(f"no RAM at {address:#x} ({size:#x} bytes)")
        return region
