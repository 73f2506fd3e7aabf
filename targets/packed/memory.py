"""Bytes at addresses, as an image without headers has them -> an ELF file of them, and back.

    ELF header  program headers  spans, each at an offset that is congruent to its address

What of it is code is told by the calls in it (`code_pages`); every segment may be read, written and executed.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.elf.header import (
    ELF_HEADER,
    PF_R,
    PF_W,
    PF_X,
    PROGRAM_HEADER,
    PT_LOAD,
    SECTION_HEADER,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_STRTAB,
    FileKind,
    read_elf_header,
    read_program_headers,
)
from kinst.targets.errors import ImageError
from kinst.targets.packed.code_pages import parts_of
from kinst.targets.values import dataclass

Row = tuple[int, ...]  # of a table of headers
Piece = tuple[int, NDArray[np.uint8]]  # an offset in the file, and what is there
_NO_SECTION: Final[Row] = (0,) * 10
_PAGE: Final = 0x1000
_PT_GNU_STACK: Final = 0x6474_E551
_MOST_SPANS: Final = 4096
_LAST: Final = 1 << 64
_SHSTRTAB: Final = b".shstrtab\0"
_NAMES: Final = b"\0.text\0.data\0" + _SHSTRTAB
_TEXT, _DATA = 1, 7  # offsets of names in it


@dataclass(frozen=True, slots=True)
class Span:
    """Some bytes of memory."""

    address: int  # of the first one, as loaded
    data: NDArray[np.uint8]

    @property
    def end(self) -> int:
        """The first address after them."""
        return self.address + len(self.data)


def elf_of_memory(facts: ArchFacts, spans: Sequence[Span], entry: int) -> NDArray[np.uint8]:
    """An ELF file with a segment for each span, sections for what of it is code and data, and a header that a rewriter
    may use.

    Raises:
        ImageError: there are none or too many of them, they overlap, or nothing is where it starts.
    """
    spans = sorted((span for span in spans if len(span.data)), key=lambda span: span.address)
    _check(spans, entry)
    at = ELF_HEADER.size + PROGRAM_HEADER.itemsize * (len(spans) + 1)
    segments, sections, pieces = list[Row](), [_NO_SECTION], list[Piece]()
    for span in spans:
        at += (span.address - at) % _PAGE
        pieces.append((at, span.data))
        size = len(span.data)
        segments.append((PT_LOAD, PF_R | PF_W | PF_X, at, span.address, span.address, size, size, _PAGE))
        for start, end, is_code in parts_of(span.data, span.address, facts):
            name, flags = (_TEXT, SHF_EXECINSTR) if is_code else (_DATA, 0)
            flags |= SHF_ALLOC | SHF_WRITE
            sections.append((name, SHT_PROGBITS, flags, span.address + start, at + start, end - start, 0, 0, 1, 0))
        at += size
    return _elf(facts, entry, segments, sections, [*pieces, (at, np.frombuffer(_NAMES, np.uint8))])


@dataclass(frozen=True, slots=True)
class Part:
    """A section of another file: some bytes of memory, and what they are."""

    name: str
    address: int
    data: NDArray[np.uint8]
    size: int  # bytes in memory; what `data` has not of them is zero
    flags: int  # SHF_


def elf_of_parts(facts: ArchFacts, parts: Sequence[Part], entry: int) -> NDArray[np.uint8]:
    """An ELF file with a segment and a section for each part. Raises ImageError: there are too many of them."""
    if len(parts) > _MOST_SPANS:
        raise ImageError(f"it has {len(parts)} sections, more than {_MOST_SPANS}")
    parts = sorted(parts, key=lambda part: part.address)
    names = b"\0" + b"".join(part.name.encode() + b"\0" for part in parts) + _SHSTRTAB
    at, name = ELF_HEADER.size + PROGRAM_HEADER.itemsize * (len(parts) + 1), 1
    segments, sections, pieces = list[Row](), [_NO_SECTION], list[Piece]()
    for part in parts:
        at += (part.address - at) % _PAGE
        pieces.append((at, part.data))
        size, kind = len(part.data), SHT_PROGBITS if len(part.data) else SHT_NOBITS
        access = PF_R | (PF_W if part.flags & SHF_WRITE else 0) | (PF_X if part.flags & SHF_EXECINSTR else 0)
        segments.append((PT_LOAD, access, at, part.address, part.address, size, part.size, _PAGE))
        sections.append((name, kind, part.flags, part.address, at, size or part.size, 0, 0, 1, 0))
        at, name = at + size, name + len(part.name.encode()) + 1
    return _elf(facts, entry, segments, sections, [*pieces, (at, np.frombuffer(names, np.uint8))])


def _elf(
    facts: ArchFacts,
    entry: int,
    segments: list[Row],
    sections: list[Row],
    pieces: list[Piece],
) -> NDArray[np.uint8]:
    """The headers around pieces, the last of which are the names of sections."""
    names_at, names = pieces[-1]
    segments.append((_PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16))
    sections.append((len(names) - len(_SHSTRTAB), SHT_STRTAB, 0, 0, names_at, len(names), 0, 0, 1, 0))
    table = names_at + len(names) + -(names_at + len(names)) % 8
    head = ELF_HEADER.pack(
        b"\x7fELF\2\1\1", FileKind.EXEC, facts.elf_machine, 1, entry, ELF_HEADER.size, table, 0,
        ELF_HEADER.size, PROGRAM_HEADER.itemsize, len(segments),
        SECTION_HEADER.itemsize, len(sections), len(sections) - 1,
    )  # fmt: skip
    start = np.frombuffer(head + np.array(segments, PROGRAM_HEADER).tobytes(), np.uint8)
    return _file([*pieces, (0, start), (table, np.frombuffer(np.array(sections, SECTION_HEADER).tobytes(), np.uint8))])


def _file(pieces: Sequence[Piece]) -> NDArray[np.uint8]:
    file = np.zeros(max(at + len(data) for at, data in pieces), np.uint8)
    for at, data in pieces:
        file[at : at + len(data)] = data
    return file


def memory_of(elf: NDArray[np.uint8]) -> list[Span]:
    """What the segments of an ELF file put into memory, in the order of their addresses; without .bss."""
    rows = read_program_headers(elf, read_elf_header(elf))
    loads = rows[(rows["kind"] == PT_LOAD) & (rows["file_size"] > 0)]
    places = zip(loads["load_address"].tolist(), loads["offset"].tolist(), loads["file_size"].tolist(), strict=True)
    return sorted((Span(start, elf[at : at + size]) for start, at, size in places), key=lambda span: span.address)


def filled(elf: NDArray[np.uint8], memory: Sequence[Span]) -> NDArray[np.uint8]:
    """An ELF file whose segments have the bytes of `memory`, where that has any."""
    file = elf.copy()
    for target in memory_of(file):
        for span in memory:
            start, end = max(target.address, span.address), min(target.end, span.end)
            if start < end:
                new = span.data[start - span.address : end - span.address]
                target.data[start - target.address : end - target.address] = new
    return file


def _check(spans: Sequence[Span], entry: int) -> None:
    if not spans:
        raise ImageError("there is nothing in it that would be loaded")
    if len(spans) > _MOST_SPANS:
        raise ImageError(f"it has {len(spans)} pieces of memory, more than {_MOST_SPANS}")
    for first, second in pairwise(spans):
        if first.end > second.address:
            raise ImageError(f"damaged: it has two contents for the memory at {second.address:#x}")
    if spans[-1].end > _LAST:
        raise ImageError(f"{len(spans[-1].data):#x} bytes at {spans[-1].address:#x} pass the last address")
    if not any(span.address <= entry < span.end for span in spans):
        raise ImageError(
            f"it starts at {entry:#x}, and has memory from {spans[0].address:#x} to {spans[-1].end:#x}: name its start "
            "with --entry"
        )
