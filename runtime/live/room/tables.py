"""A guest's page tables in its RAM -> where they map an address; and more pages in them."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.readout.memory import Space

Entries = NDArray[np.uint64]
_ENTRY: Final = 8  # bytes


class Format(Protocol):
    """The form of a machine's tables, in one mode of its MMU."""

    @property
    def shifts(self) -> tuple[int, ...]:
        """For each level, the root's first: how many bits of an address are below its index."""
        ...

    @property
    def root_bits(self) -> int:
        """How many bits index the root."""
        ...

    def is_table(self, entry: int, level: int) -> bool:
        """Whether an entry points to a table of the next level."""
        ...

    def is_leaf(self, entry: int, level: int) -> bool:
        """Whether an entry maps memory."""
        ...

    def target(self, entry: int) -> int:
        """The physical address in an entry, which may have lower bits of a leaf's that are not zero."""
        ...

    def is_code(self, leaf: int) -> bool:
        """Whether the kernel may execute what a leaf maps."""
        ...

    def pointer(self, table: int) -> int:
        """The entry that points to a table at a physical address."""
        ...

    def pages(self, text: int, first: int, count: int, *, is_code: bool) -> Entries:
        """Entries of the last level for so many pages from a physical address on: like a leaf that maps code, but
        read-only and executable, or writable and never executed."""
        ...


class Tables:
    """The tables under one root."""

    def __init__(self, form: Format, root: int, memory: SharedRam, page: Callable[[int], int]) -> None:
        """`page` gives the physical address of so many bytes for another table, which are zero and aligned."""
        self._form, self._root, self._memory, self._new = form, root, memory, page
        self.page_size = 1 << form.shifts[-1]
        self.span = 1 << form.shifts[0] + form.root_bits  # bytes of addresses that the tables tell apart

    def leaf(self, address: int) -> tuple[int, int] | None:
        """The entry that maps an address, and the physical address of that; None: nothing maps it."""
        table = self._root
        for level, shift in enumerate(self._form.shifts):
            entry = self._load(self._place(table, level, address))
            if self._form.is_leaf(entry, level):
                inside = (1 << shift) - 1
                return entry, self._form.target(entry) & ~inside | address & inside
            if not self._form.is_table(entry, level):
                break
            table = self._form.target(entry)
        return None

    def code_at(self, physical: int) -> Iterator[int]:
        """The addresses, modulo `span`, at which code is mapped to a physical address."""
        return self._code_at(physical, self._root, 0, 0)

    def _code_at(self, physical: int, table: int, level: int, base: int) -> Iterator[int]:
        bits, shift = self._bits(level), self._form.shifts[level]
        entries = np.frombuffer(self._memory.read(Space.PHYSICAL, table, _ENTRY << bits), "<u8")
        for index in np.flatnonzero(entries).tolist():
            entry, address = int(entries[index]), base | index << shift
            if self._form.is_table(entry, level):
                yield from self._code_at(physical, self._form.target(entry), level + 1, address)
            elif self._form.is_leaf(entry, level) and self._form.is_code(entry):
                inside = physical - (self._form.target(entry) & -(1 << shift))
                if 0 <= inside < 1 << shift:
                    yield address + inside

    def add(self, text: int, address: int, physical: int, size: int, *, is_code: bool) -> None:
        """Map a range of whole pages, none of which is mapped yet, with attributes like those of the leaf `text`."""
        last = len(self._form.shifts) - 1
        most = self.page_size // _ENTRY * self.page_size  # what one table of the last level maps
        while size:
            some = min(size, most - address % most)
            place = self._place(self._table(address), last, address)
            entries = self._form.pages(text, physical, some // self.page_size, is_code=is_code)
            self._memory.write(place, entries.astype("<u8").tobytes())
            address, physical, size = address + some, physical + some, size - some

    def _table(self, address: int) -> int:
        """The table of the last level for an address; those that are missing on the way are added."""
        table = self._root
        for level in range(len(self._form.shifts) - 1):
            place = self._place(table, level, address)
            entry = self._load(place)
            if not self._form.is_table(entry, level):
                entry = self._form.pointer(self._new(self.page_size))
                self._memory.write(place, entry.to_bytes(_ENTRY, "little"))
            table = self._form.target(entry)
        return table

    def _place(self, table: int, level: int, address: int) -> int:
        """The physical address of an entry."""
        return table + _ENTRY * (address >> self._form.shifts[level] & (1 << self._bits(level)) - 1)

    def _bits(self, level: int) -> int:
        """How many bits index a table."""
        return self._form.shifts[-1] - 3 if level else self._form.root_bits

    def _load(self, place: int) -> int:
        return int.from_bytes(self._memory.read(Space.PHYSICAL, place, _ENTRY), "little")
