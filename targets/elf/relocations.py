"""Relocation tables -> what is written where when the image is loaded, or when it relocates itself.

Only tables that are still to be applied count: those that a loader sees (SHF_ALLOC sections, else PT_DYNAMIC), and
every table of an ET_REL file. The `.rela.text` that ``ld --emit-relocs`` keeps in a vmlinux is applied already, and is
not read.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.registry import arch_by_elf_machine
from kinst.targets.arch.relocations import RelocationFacts
from kinst.targets.columns import unique, unique_rows
from kinst.targets.elf.dynamic import dynamic_entries
from kinst.targets.elf.header import (
    PT_LOAD,
    SHF_ALLOC,
    SHT_REL,
    SHT_RELA,
    SHT_RELR,
    ElfHeader,
    FileKind,
)
from kinst.targets.elf.sections import Section, Segment, content
from kinst.targets.values import dataclass

RELA: Final = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
REL: Final = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4")])


RELR_SIZE: Final = 8


@dataclass(frozen=True, slots=True)
class Relocations:
    """Columns of the same length: `size` bytes at `address` are written; if `relative`, `addend` is a link address."""

    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    addend: NDArray[np.uint64]
    relative: NDArray[np.bool_]

    @property
    def ranges(self) -> NDArray[np.uint64]:
        """(n, 2) address and size, in address order."""
        written = self.size > 0
        pairs = np.stack([self.address[written], self.size[written]], axis=1)
        return unique_rows(pairs)

    @property
    def pointers(self) -> NDArray[np.uint64]:
        """The link addresses that relocations store, sorted."""
        return unique(self.addend[self.relative])


def _joined(tables: Iterable[Relocations]) -> Relocations:
    """All rows of some tables."""
    none = np.zeros(0, np.uint64)
    found = [*tables, Relocations(none, none, none, np.zeros(0, np.bool_))]
    return Relocations(
        np.concatenate([table.address for table in found]),
        np.concatenate([table.size for table in found]),
        np.concatenate([table.addend for table in found]),
        np.concatenate([table.relative for table in found]),
    )


def _rela_table(content: NDArray[np.uint8], machine: int, base: int = 0) -> Relocations:
    """Rows of a RELA table; `base` is added to each offset (ET_REL: the section's address)."""
    kinds = arch_by_elf_machine(machine).relocations
    rows = np.frombuffer(content[: len(content) // RELA.itemsize * RELA.itemsize].tobytes(), RELA)
    relative = np.isin(rows["kind"], list(kinds.relative))
    return Relocations(
        rows["offset"] + np.uint64(base), _written(rows["kind"], kinds), rows["addend"].astype(np.uint64), relative
    )


def _rel_table(content: NDArray[np.uint8], machine: int, base: int = 0) -> Relocations:
    """Rows of a REL table. Their addends are in the relocated words, so the table gives no address."""
    rows = np.frombuffer(content[: len(content) // REL.itemsize * REL.itemsize].tobytes(), REL)
    none = np.zeros(len(rows), np.bool_)
    return Relocations(
        rows["offset"] + np.uint64(base),
        _written(rows["kind"], arch_by_elf_machine(machine).relocations),
        np.zeros(len(rows), np.uint64),
        none,
    )


def relr_table(content: NDArray[np.uint8]) -> Relocations:
    """Rows of a RELR table (gABI: an even word is an address; bit n of an odd word stands for word n-1 after the last).

    A bitmap counts from where the entries before it end: an address moves that on by one word, a bitmap by 63.
    """
    words = np.frombuffer(content[: len(content) // RELR_SIZE * RELR_SIZE].tobytes(), "<u8").astype(np.uint64)
    rows = np.arange(len(words))
    is_address = (words & np.uint64(1)) == 0
    # Bit n of bitmap k (from 0) after an address: 1 + 63 * k + n - 1 words from it. Bit 0 only marks the word as a
    # bitmap.
    last = np.maximum.accumulate(np.where(is_address, rows, 0)) if len(words) else rows
    start = words[last] + np.uint64(8) + ((rows - last - 1) * (63 * 8)).astype(np.uint64)
    bits = np.unpackbits(words[:, np.newaxis].view(np.uint8), axis=1, bitorder="little")[:, 1:].astype(np.bool_)
    chosen, bit = np.nonzero(bits & ~is_address[:, np.newaxis])
    address = np.concatenate([words[is_address], start[chosen] + (bit * 8).astype(np.uint64)])
    zero = np.zeros(len(address), np.uint64)
    return Relocations(address, np.full(len(address), 8, np.uint64), zero, np.zeros(len(address), np.bool_))


def _written(kind: NDArray[np.uint32], kinds: RelocationFacts) -> NDArray[np.uint64]:
    size = np.full(len(kind), 4, np.uint64)
    for known, width in kinds.sizes.items():
        size[kind == known] = width
    return size


def read_relocations(
    data: NDArray[np.uint8], header: ElfHeader, segments: tuple[Segment, ...], sections: tuple[Section, ...]
) -> Relocations:
    """The relocations of an image that are still to be applied."""
    found = [
        _table(content(data, section), section.kind, header.machine, base)
        for section in sections
        if (base := _base(header, section, sections)) is not None
    ]
    return _joined(found or _dynamic_tables(data, header, segments))


def _base(header: ElfHeader, section: Section, sections: tuple[Section, ...]) -> int | None:
    """What the offsets of a table count from; None: it is no table, or not to be applied."""
    if section.kind not in (SHT_RELA, SHT_REL, SHT_RELR):
        return None
    if header.kind is not FileKind.REL:
        # In a linked file a table that is not loaded was applied by the linker (ld --emit-relocs): it is not to be
        # applied again.
        return 0 if section.flags & SHF_ALLOC else None
    # In a module offsets count from the section that is relocated (sh_info); tables of debug sections do not matter
    # here.
    target = sections[section.info] if section.info < len(sections) else section
    return target.address if target.flags & SHF_ALLOC else None


def _table(table: NDArray[np.uint8], kind: int, machine: int, base: int) -> Relocations:
    if kind == SHT_RELR:
        return relr_table(table)
    return (_rela_table if kind == SHT_RELA else _rel_table)(table, machine, base)


# d_tag of a table's address and of its size: DT_RELA, DT_REL, DT_JMPREL (RELA on all our machines), DT_RELR.
_DYNAMIC_TABLES: Final = ((7, 8, SHT_RELA), (17, 18, SHT_REL), (23, 2, SHT_RELA), (36, 35, SHT_RELR))


def _dynamic_tables(data: NDArray[np.uint8], header: ElfHeader, segments: tuple[Segment, ...]) -> list[Relocations]:
    """The tables that PT_DYNAMIC names, for images without sections."""
    tags = dynamic_entries(data, segments)
    if not tags:
        return []
    found = []
    for place, length, kind in _DYNAMIC_TABLES:
        table = _loaded(data, segments, tags.get(place, 0), tags.get(length, 0))
        found.append(_table(table, kind, header.machine, 0))
    return found


def _loaded(data: NDArray[np.uint8], segments: tuple[Segment, ...], address: int, size: int) -> NDArray[np.uint8]:
    for segment in segments:
        inside = address - segment.address
        if segment.kind == PT_LOAD and inside >= 0 and inside + size <= segment.file_size:
            return data[segment.offset + inside : segment.offset + inside + size]
    return data[:0]
