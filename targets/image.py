"""The path of an ELF file -> the image: headers, segments, sections, code, symbols and bytes at an address.

The one file that knows LIEF. The file is mapped, never copied: a vmlinux has up to 588 MB.
"""

import mmap
import os
import stat
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import arch_by_elf_machine
from kinst.targets.elf.header import (
    PF_X,
    PT_LOAD,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_PROGBITS,
    ElfHeader,
    FileKind,
    read_elf_header,
    read_program_headers,
    read_section_headers,
)
from kinst.targets.elf.outline import outline
from kinst.targets.elf.relocations import Relocations, read_relocations
from kinst.targets.elf.sections import CodeRegion, Section, Segment, content
from kinst.targets.elf.symbols import Symbols, read_symbols
from kinst.targets.errors import ImageError
from kinst.targets.visible import visible

if TYPE_CHECKING:
    import lief

__all__ = [
    "CodeRegion",
    "Image",
    "Section",
    "Segment",
    "build_id",
    "is_elf",
    "module_name",
    "open_debug_symbols",
    "open_image",
]

_MAGIC: Final = b"\x7fELF"
_MACHINE_NAMES: Final = {
    2: "SPARC", 3: "i386", 8: "MIPS", 20: "PowerPC", 21: "PowerPC 64", 22: "s390", 40: "32-bit ARM", 43: "SPARC 64",
    50: "IA-64", 247: "BPF", 258: "LoongArch",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Image:
    """An ELF image as it lies in its file. Every address is a link address."""

    path: Path
    module: str
    facts: ArchFacts
    data: NDArray[np.uint8]  # the whole file, mapped read-only
    header: ElfHeader
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    code_regions: tuple[CodeRegion, ...]  # in address order, not overlapping
    symbols: Symbols  # .symtab, then .dynsym
    relocations: Relocations  # those that are applied at load time, or by the image itself when it starts

    @property
    def kind(self) -> FileKind:
        """EXEC, DYN or REL."""
        return self.header.kind

    @property
    def entry(self) -> int:
        """The entry point, as the header has it: physical in some kernels."""
        return self.header.entry

    @property
    def relocated(self) -> NDArray[np.uint64]:
        """(n, 2) address and size of what relocations write at load time or at self-relocation, in address order."""
        return self.relocations.ranges

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def offset_of(self, address: int) -> int | None:
        """The file offset of a link address; None where the file has no byte for it."""
        if self.kind is FileKind.REL:
            return address if any(_holds(section, address) for section in self.sections) else None
        for segment in self.segments:
            if segment.kind == PT_LOAD and 0 <= address - segment.address < segment.file_size:
                return segment.offset + address - segment.address
        return None

    def offsets_of(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The file offsets of many link addresses; -1 where the file has no byte."""
        offsets = np.full(len(addresses), -1, np.int64)
        for start, offset, size in self._file_backed():
            inside = addresses - np.uint64(start) < np.uint64(size)  # below the start it wraps round: not less
            offsets[inside] = (addresses[inside] - np.uint64(start)).astype(np.int64) + offset
        return offsets

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes at a link address.

        Raises:
            ImageError: the file does not hold all of them.
        """
        offset, last = self.offset_of(address), self.offset_of(address + max(size, 1) - 1)
        if offset is None or last is None or last - offset != max(size, 1) - 1:
            raise ImageError(f"{self.path}: {size} bytes at {address:#x} are not in the file")
        return self.data[offset : offset + size].tobytes()

    def _file_backed(self) -> list[tuple[int, int, int]]:
        """(address, offset, size) of everything that has both an address and bytes in the file."""
        if self.kind is FileKind.REL:
            return [(s.address, s.offset, s.size) for s in self.sections if _has_bytes(s)]
        return [(s.address, s.offset, s.file_size) for s in self.segments if s.kind == PT_LOAD]


def _has_bytes(section: Section) -> bool:
    return bool(section.flags & SHF_ALLOC) and section.kind != SHT_NOBITS


def _holds(section: Section, address: int) -> bool:
    return _has_bytes(section) and 0 <= address - section.address < section.size


def open_image(path: Path, *, module: str | None = None) -> Image:
    """Read an image.

    Args:
        path: the ELF file: a linked kernel or firmware (EXEC, DYN) or a kernel module (REL).
        module: what the probes' module field shall be; else the file's name without its ending.

    Raises:
        ImageError: one line that says what is wrong with the file.
    """
    try:
        return _read(path, module or module_name(path))
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


def open_debug_symbols(path: Path, image: Image) -> Symbols:
    """The symbols of a separate debug file of `image`, which may have no bytes of code (objcopy --only-keep-debug).

    Raises:
        ImageError: it cannot be read, has no symbols, or was not made from this image.
    """
    try:
        data = _map_file(path)
        header = read_elf_header(data)
        _facts(header)
        rows = read_section_headers(data, header)
        binary = _parse(outline(data, header, rows[:0], rows), 0, len(rows))
        sections = _sections(binary, rows, header, len(data))
        _check_same_build(image, data, sections)
        symbols = read_symbols(data, header, sections)
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None
    if not len(symbols):
        raise ImageError(f"{path}: no symbol table")
    return symbols


def is_elf(path: Path) -> bool:
    """Whether a file begins as ELF files do. Raises ImageError: it cannot be read."""
    try:
        return _map_file(path)[: len(_MAGIC)].tobytes() == _MAGIC
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


def module_name(path: Path) -> str:
    """The module a file stands for: its name without .ko, .elf, .debug and the like."""
    name = path.name
    for ending in (".debug", ".elf", ".ko", ".dbg", ".axf", ".out"):
        name = name.removesuffix(ending)
    return visible(name or path.name)


def _read(path: Path, module: str) -> Image:
    data = _map_file(path)
    header = read_elf_header(data)
    facts = _facts(header)
    segment_rows, section_rows = read_program_headers(data, header), read_section_headers(data, header)
    if not len(segment_rows) and header.kind is not FileKind.REL:
        raise ImageError("no program headers: there is nothing to load and nothing to patch")
    tables = outline(data, header, segment_rows, section_rows)
    binary = _parse(tables, len(segment_rows), len(section_rows))
    segments = _segments(segment_rows)
    sections = _sections(binary, section_rows, header, len(data))
    regions = _code_regions(header, segments, sections)
    if not regions:
        raise ImageError("no code: no executable section or segment has bytes in the file")
    symbols = read_symbols(data, header, sections)
    relocations = read_relocations(data, header, segments, sections)
    return Image(path, module, facts, data, header, segments, sections, regions, symbols, relocations)


def _map_file(path: Path) -> NDArray[np.uint8]:
    """The file as an array. Only regular files: a device or a FIFO would never end."""
    try:
        # Not Path.open: opening a FIFO that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise ImageError(f"cannot be read: {getattr(error, 'strerror', error)}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ImageError("is a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file")
        if status.st_size == 0:
            return np.zeros(0, np.uint8)
        return np.frombuffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), np.uint8)
    except OSError as error:
        raise ImageError(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _facts(header: ElfHeader) -> ArchFacts:
    try:
        return arch_by_elf_machine(header.machine)
    except ImageError as error:
        name = _MACHINE_NAMES.get(header.machine)
        raise ImageError(f"an image for {name}: {error}" if name else str(error)) from None


def _parse(tables: bytes, segment_count: int, section_count: int) -> "lief.ELF.Binary":
    """LIEF's model of an outline, without what has no content there: relocations, symbols, notes."""
    import lief  # here, since it takes 0.4 s

    lief.logging.disable()  # a hostile file makes it write to stderr; what is wrong is said by our own errors
    config = lief.ELF.ParserConfig()
    config.parse_relocations = config.parse_symtab_symbols = config.parse_dyn_symbols = False
    config.parse_symbol_versions = config.parse_notes = config.parse_overlay = False
    binary = lief.ELF.parse(tables, config)
    if binary is None:
        raise ImageError("damaged: LIEF cannot read it")
    if (segment_count and len(binary.segments) != segment_count) or len(binary.sections) != section_count:
        raise ImageError(
            f"damaged: of {segment_count} segments and {section_count} sections LIEF reads "
            f"{len(binary.segments)} and {len(binary.sections)}"
        )
    return binary


def _segments(rows: NDArray[np.void]) -> tuple[Segment, ...]:
    """From the table itself: LIEF warns of types that it does not know, and cuts a segment that ends beyond the outline
    if it begins inside."""
    columns = ("kind", "flags", "offset", "address", "load_address", "file_size", "size", "alignment")
    table = zip(*(rows[column].tolist() for column in columns), strict=True)
    return tuple(Segment(index, *row) for index, row in enumerate(table))


def _sections(
    binary: "lief.ELF.Binary", rows: NDArray[np.void], header: ElfHeader, file_size: int
) -> tuple[Section, ...]:
    """Types and offsets come from the table itself: LIEF warns of a type that it does not know, and has an outline."""
    end, found = file_size, []
    places = zip(rows["kind"].tolist(), rows["offset"].tolist(), strict=True)
    for index, (row, (kind, offset)) in enumerate(zip(binary.sections, places, strict=True)):
        address = row.virtual_address
        if header.kind is FileKind.REL and row.flags & SHF_ALLOC:
            end = -(-end // 16) * 16
            address = end if kind == SHT_NOBITS else offset
            end += row.size if kind == SHT_NOBITS else 0
        found.append(
            Section(
                index=index,
                name=visible(str(row.name)),
                kind=kind,
                flags=int(row.flags),
                address=address,
                offset=offset,
                size=row.size,
                link=row.link,
                info=row.information,
                entry_size=row.entry_size,
                alignment=row.alignment,
            )
        )
    return tuple(found)


def _code_regions(
    header: ElfHeader, segments: tuple[Segment, ...], sections: tuple[Section, ...]
) -> tuple[CodeRegion, ...]:
    """Executable sections, so that the .rodata of an RWX segment is not swept; without any, executable segments."""
    loads = [segment for segment in segments if segment.kind == PT_LOAD and segment.file_size]
    wanted = SHF_ALLOC | SHF_EXECINSTR
    found = [
        CodeRegion(section.address, section.offset, section.size)
        for section in sections
        if section.kind == SHT_PROGBITS and section.flags & wanted == wanted and section.size
    ]
    if header.kind is not FileKind.REL:
        for region in found:
            _check_in_segment(region, loads)
    if not found:
        found = [_without_headers(header, segment) for segment in loads if segment.flags & PF_X]
    found.sort(key=lambda region: region.address)
    for first, second in pairwise(found):
        if first.address + first.size > second.address:
            raise ImageError(f"damaged: two executable sections overlap at {second.address:#x}")
    return tuple(region for region in found if region.size > 0)


def _check_in_segment(region: CodeRegion, loads: list[Segment]) -> None:
    for segment in loads:
        inside = region.address - segment.address
        if inside >= 0 and inside + region.size <= segment.file_size and region.offset == segment.offset + inside:
            return
    raise ImageError(
        f"damaged: the executable section at {region.address:#x} (file offset {region.offset:#x}, "
        f"{region.size:#x} bytes) is not where a segment has it"
    )


def _without_headers(header: ElfHeader, segment: Segment) -> CodeRegion:
    """A segment that starts with the file starts with its headers, which are no code."""
    skip = header.phoff + header.phnum * header.phentsize if segment.offset == 0 else 0
    skip = min(skip, segment.file_size)
    return CodeRegion(segment.address + skip, segment.offset + skip, segment.file_size - skip)


def build_id(data: NDArray[np.uint8], sections: tuple[Section, ...]) -> bytes | None:
    """The GNU build-id (a note of type 3, owner "GNU") of a file, if a note section has one."""
    for section in sections:
        if section.kind != SHT_NOTE:
            continue
        notes, position = content(data, section).tobytes(), 0
        while position + 12 <= len(notes):
            name_size, size, kind = struct.unpack_from("<III", notes, position)
            start = position + 12 + -(-name_size // 4) * 4
            if kind == 3 and notes[position + 12 : position + 16] == b"GNU\0":
                return notes[start : start + size]
            position = start + -(-size // 4) * 4
    return None


def _check_same_build(image: Image, data: NDArray[np.uint8], sections: tuple[Section, ...]) -> None:
    """A debug file belongs to an image when their build-ids agree; without build-ids, when their code lies alike."""
    ours, theirs = build_id(image.data, image.sections), build_id(data, sections)
    if ours is not None and theirs is not None:
        if ours != theirs:
            raise ImageError(f"made from another build: its build-id is {theirs.hex()}, the image's {ours.hex()}")
        return
    places = {section.name: (section.address, section.size) for section in sections if section.flags & SHF_EXECINSTR}
    for section in image.sections:
        if section.flags & SHF_EXECINSTR and section.name in places and image.kind is not FileKind.REL:
            there = places[section.name]
            if there != (section.address, section.size):
                raise ImageError(
                    f"made from another build: {section.name} is at {there[0]:#x} ({there[1]:#x} bytes) there, "
                    f"at {section.address:#x} ({section.size:#x} bytes) in the image"
                )
