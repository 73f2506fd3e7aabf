"""Physical memory: host buffers that Unicorn maps and that we read and write directly."""

import ctypes
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.host_memory import host_memory
from kinst.runtime.machine.physical.frames import PAGE
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

_WORD: Final = (1 << 64) - 1


# Called with an address, a size, and the bytes, if they are known.
WriteWatcher = Callable[[int, int, bytes | memoryview | None], None]


@dataclass(frozen=True, slots=True)
class Region:
    """RAM at [base, base + size)."""

    base: int
    size: int
    view: memoryview

    def holds(self, address: int, size: int = 1) -> bool:
        """Whether all of [address, address + size) lies inside."""
        return self.base <= address and address + size <= self.base + self.size


class Base(Protocol):
    """RAM at one moment; see `kinst.runtime.machine.snapshots.ram.RamBase`."""

    def changed(self) -> dict[int, bytes]:
        """The pages that are not as they were, by number."""
        ...

    def touched(self) -> list[int]:
        """The physical pages that may not be as they were."""
        ...

    def restore(self, changed: Mapping[int, bytes]) -> None:
        """Let all RAM be as it was, but for these pages."""
        ...


class PhysicalMemory:
    """The machine's RAM; implements `kinst.runtime.machine.machine.Memory`."""

    def __init__(self, engine: QilingMachine) -> None:
        self._engine = engine
        self._base_of_all: Base | None = None
        self.regions: list[Region] = []
        # The first region is the board's RAM, in which the stacks are: most accesses of the trap path are to its words.
        self._base, self._size, self._words = 0, 0, memoryview(b"").cast("Q")
        self._host = 0  # its address in the host's memory
        self._marks = memoryview(b"").cast("Q")  # for each of its pages a word: whether it is one of `code_pages`
        self._marks_host = 0
        self.code_pages: set[int] = set()  # physical page numbers that instructions were fetched from
        self._is_code_stale = False  # code that may have been translated was changed: all is translated again
        self._on_write: WriteWatcher | None = None

    def add_ram(self, address: int, size: int) -> None:
        """Map RAM; address and size must be page-aligned. A page takes no memory until it is used. Raises
        MachineError."""
        if address % PAGE or size % PAGE or size <= 0:
            raise MachineError(f"RAM at {address:#x}: its address and size ({size:#x}) must be multiples of {PAGE}")
        for region in self.regions:
            if address < region.base + region.size and region.base < address + size:
                raise MachineError(f"RAM at {address:#x}: overlaps RAM at {region.base:#x}")
        taken = sum(region.size for region in self.regions)
        available = host_memory()
        if taken + size > available:
            raise MachineError(
                f"RAM at {address:#x}: {taken + size >> 20:,} MiB, and the host has {available >> 20:,} MiB left"
            )
        buffer = mmap.mmap(-1, size)
        self._engine.map_memory(address, buffer)
        self.regions.append(Region(address, size, memoryview(buffer)))
        if len(self.regions) == 1:
            self._base, self._size, self._words = address, size, memoryview(buffer).cast("Q")
            self._host = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
            marks = mmap.mmap(-1, size // PAGE * 8)
            self._marks, self._marks_host = (
                memoryview(marks).cast("Q"),
                ctypes.addressof(ctypes.c_char.from_buffer(marks)),
            )

    def on_write(self, written: WriteWatcher) -> None:
        """Call `written` with what the host is about to write: devices, models of the CPU, the trap path, tracers. The
        guest's own stores do not come here."""
        self._on_write = written

    @property
    def base(self) -> Base | None:
        """What all RAM is a private mapping of, since a snapshot was taken or restored; None: no such thing."""
        return self._base_of_all

    def keep(self, base: Base) -> None:
        """Note that all RAM was mapped anew, by `base`, with other content."""
        self._base_of_all = base
        self._is_code_stale = True

    def add_alias(self, address: int, size: int, target: int) -> None:
        """Let the bytes at `target` be seen at `address` as well, all page-aligned. Code that is changed at one of them
        and executed at the other may be executed as it was. Raises MachineError: there is no such memory."""
        region = self._region(target, size)
        view = region.view[target - region.base : target - region.base + size]
        self._engine.map_memory(address, view)
        self.regions.append(Region(address, size, view))

    def find(self, address: int, size: int = 1) -> Region | None:
        """The region that holds [address, address + size); None if none does."""
        for region in self.regions:
            if region.base <= address and address + size <= region.base + region.size:
                return region
        return None

    def has(self, address: int, size: int) -> bool:
        """Whether all of [address, address + size) is RAM."""
        return self.find(address, size) is not None

    @contextmanager
    def code(self, address: int, size: int) -> Iterator[NDArray[np.uint8]]:
        """The bytes themselves as an array, which may be changed in this context."""
        region = self._region(address, size)
        start = address - region.base
        yield np.frombuffer(region.view, np.uint8)[start : start + size]
        self._is_code_stale = True
        if self._on_write is not None:
            self._on_write(address, size, region.view[start : start + size])

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes at a physical address. Raises MachineError where no RAM is."""
        region = self._region(address, size)
        start = address - region.base
        return bytes(region.view[start : start + size])

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Write bytes. Code among them is translated again. Raises MachineError where no RAM is."""
        region = self._region(address, len(data))
        if self._on_write is not None:
            self._on_write(address, len(data), data)
        start = address - region.base
        region.view[start : start + len(data)] = data
        self._check_code(address, len(data))

    def code_changed(self) -> None:
        """Have all code translated again before the CPUs run: some of it was changed."""
        self._is_code_stale = True

    def took_changes(self) -> bool:
        """Whether code must be translated again; the caller does so."""
        is_stale, self._is_code_stale = self._is_code_stale, False
        return is_stale

    def _check_code(self, address: int, size: int) -> None:
        """Note that code has to be translated again, if these bytes may be code."""
        if self.code_pages and not self.code_pages.isdisjoint(range(address >> 12, (address + size + 4095) >> 12)):
            self._is_code_stale = True

    def view(self, address: int, size: int, *, is_written: bool) -> memoryview:
        """The bytes themselves, for a device that moves many. Raises MachineError where no RAM is."""
        region = self._region(address, size)
        start = address - region.base
        if is_written:
            if self._on_write is not None:
                self._on_write(address, size, None)
            self._check_code(address, size)
        return region.view[start : start + size]

    def add_code_page(self, page: int) -> None:
        """Note that instructions are fetched from a physical page."""
        self.code_pages.add(page)
        at = page - self._base // PAGE
        if 0 <= at < len(self._marks):
            self._marks[at] = 1

    def origins(self, page: int, entries: Sequence[int]) -> list[int] | None:
        """What a translation depends on, for the engine to compare: the table entries at these addresses, and whether
        the page is one of `code_pages`. A list of addresses of 64-bit words in the host's memory, each followed by its
        value. None if one of them is not in the board's RAM."""
        base, size, words, host = self._base, self._size, self._words, self._host
        at = page - base // PAGE
        if not 0 <= at < len(self._marks):
            return None
        found = [self._marks_host + 8 * at, self._marks[at]]
        for entry in entries:
            start = entry - base
            if not 0 <= start < size:
                return None
            found += host + start, words[start >> 3]
        return found

    def host_word(self, address: int) -> int | None:
        """The host's address of an aligned 64-bit word of the board's RAM; None if it is not there."""
        start = address - self._base
        return None if start & 7 or not 0 <= start < self._size else self._host + start

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of `size` bytes. Raises MachineError where no RAM is."""
        start = address - self._base
        if not start & 7 and 0 <= start < self._size:
            if size == 8:
                return self._words[start >> 3]
            if size == 16:
                return self._words[start >> 3] | self._words[(start >> 3) + 1] << 64
        return int.from_bytes(self.read(address, size), "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Store a little-endian word of data. Raises MachineError where no RAM is."""
        start = address - self._base
        if self._on_write is not None:
            self._on_write(address, size, None)
        if size == 8 and not start & 7 and 0 <= start < self._size:
            self._words[start >> 3] = value & _WORD
        elif size == 16 and not start & 7 and 0 <= start < self._size - 8:
            self._words[start >> 3] = value & _WORD
            self._words[(start >> 3) + 1] = value >> 64 & _WORD
        else:
            region = self._region(address, size)
            start = address - region.base
            region.view[start : start + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        if address >> 12 in self.code_pages:
            self._is_code_stale = True

    def _region(self, address: int, size: int) -> Region:
        region = self.find(address, size)
        if region is None:
            raise MachineError(f"no RAM at {address:#x} ({size:#x} bytes)")
        return region
