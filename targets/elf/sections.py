"""Rows of the header tables of an ELF file -> segments and sections as values: the only ones that all else knows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import SHF_ALLOC, SHT_NOBITS, ElfHeader, FileKind
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_SEGMENT: Final = ("kind", "flags", "offset", "address", "load_address", "file_size", "size", "alignment")
_SECTION: Final = ("kind", "flags", "address", "offset", "size", "link", "info", "entry_size", "alignment")
_ALIGNMENT: Final = 16  # of sections that get an address here


@dataclass(frozen=True, slots=True)
class Segment:
    """A row of the program header table. `kind` is p_type, `flags` p_flags, `load_address` p_paddr."""

    index: int
    kind: int
    flags: int
    offset: int
    address: int
    load_address: int
    file_size: int
    size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Section:
    """A row of the section header table. `kind` is sh_type.

    The sections of an ET_REL file have no addresses yet; here they have the file offset as address (those without bytes
    in the file follow its end), so that a module's symbols, functions and bytes have one address each, as in a linked
    image.
    """

    index: int
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class CodeRegion:
    """Machine code in the file: link address, file offset and size."""

    address: int
    offset: int
    size: int


def content(data: NDArray[np.uint8], section: Section) -> NDArray[np.uint8]:
    """The bytes of a section, of the mapped file."""
    return data[section.offset : section.offset + section.size]


def segments_of(rows: NDArray[np.void]) -> tuple[Segment, ...]:
    """The segments of PROGRAM_HEADER rows."""
    return tuple(Segment(index, *row) for index, row in enumerate(_columns(rows, _SEGMENT)))


def sections_of(data: NDArray[np.uint8], header: ElfHeader, rows: NDArray[np.void]) -> tuple[Section, ...]:
    """The sections of checked SECTION_HEADER rows, with the names that the file has for them."""
    names = section_names(data, header, rows)
    pairs = zip(names, _columns(rows, _SECTION), strict=True)
    found = (Section(index, name, *row) for index, (name, row) in enumerate(pairs))
    return tuple(_placed(found, len(data)) if header.kind is FileKind.REL else found)


def section_names(data: NDArray[np.uint8], header: ElfHeader, rows: NDArray[np.void]) -> list[str]:
    """The names of sections, made visible; empty if the file has no table of names."""
    if not len(rows) or not header.shstrndx:
        return [""] * len(rows)
    table = rows[header.shstrndx]
    start = int(table["offset"])
    names = data[start : start + int(table["size"])].tobytes() + b"\0"
    return [text_of(names[at : names.index(b"\0", at)]) for at in rows["name"].tolist()]


def _columns(rows: NDArray[np.void], names: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """The values of some columns, row by row."""
    return zip(*(rows[name].tolist() for name in names), strict=True)


def _placed(sections: Iterator[Section], end: int) -> Iterator[Section]:
    """Addresses for the sections of an ET_REL file of `end` bytes: see `Section`."""
    for section in sections:
        if not section.flags & SHF_ALLOC:
            yield section
            continue
        end += -end % _ALIGNMENT
        is_empty = section.kind == SHT_NOBITS
        yield replace(section, address=end if is_empty else section.offset)
        end += section.size if is_empty else 0
