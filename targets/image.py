"""The path of an ELF file -> the image: headers, segments, sections, code, symbols and bytes at an address.

The file is mapped, never copied: a vmlinux has up to 588 MB. LIEF must read the same tables as we do.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import arch_by_elf_machine
from kinst.targets.elf.file import open_elf
from kinst.targets.elf.header import (
    PF_X,
    PT_LOAD,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_RELA,
    ElfHeader,
    FileKind,
    Tables,
    read_elf_header,
    read_tables,
)
from kinst.targets.elf.relocations import Relocations, read_relocations
from kinst.targets.elf.same_build import check_same_code, has_same_build_id
from kinst.targets.elf.second_reader import read_again
from kinst.targets.elf.sections import CodeRegion, Section, Segment, sections_of, segments_of
from kinst.targets.elf.symbols import Symbols, read_symbols
from kinst.targets.errors import ImageError
from kinst.targets.packed.container import contained
from kinst.targets.packed.layer import Container
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.values import dataclass
from kinst.targets.visible import visible

__all__ = [
    "CodeRegion",
    "Image",
    "Section",
    "Segment",
    "architecture",
    "glance",
    "module_name",
    "open_debug_symbols",
    "open_image",
]

_MACHINE_NAMES: Final = {
    2: "SPARC", 3: "i386", 8: "MIPS", 20: "PowerPC", 21: "PowerPC 64", 22: "s390", 40: "32-bit ARM", 43: "SPARC 64",
    50: "IA-64", 247: "BPF", 258: "LoongArch",
}  # fmt: skip
_ENDINGS: Final = (
    ".debug", ".elf", ".ko", ".dbg", ".axf", ".out",
    ".bin", ".hex", ".ihex", ".srec", ".s19", ".s28", ".s37", ".mot", ".itb", ".fit", ".efi",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Image:
    """An ELF image as it is in its file. Every address is a link address."""

    path: Path
    module: str
    facts: ArchFacts
    data: NDArray[np.uint8]  # the whole ELF file, mapped read-only, or in memory if it was packed in another
    header: ElfHeader
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    code_regions: tuple[CodeRegion, ...]  # in address order, not overlapping
    symbols: Symbols  # .symtab, then .dynsym
    relocations: Relocations  # those that are applied at load time, or by the image itself when it starts
    packing: str  # what kind of file holds the ELF file ("bzImage, xz"); "": it is the ELF file itself
    container: Container | None = None  # that file, if it is no ELF file and can be written again

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

    @property
    def kept_relocations(self) -> Iterator[Section]:
        """Sections of relocations that the linker applied and kept (``ld --emit-relocs``) for what is loaded.

        A loader that moves the image applies them once more, as the decompressor of Linux for amd64 does.
        """
        targets = {one.index: one for one in self.sections}
        for section in self.sections:
            target = targets.get(section.info) if section.kind == SHT_RELA and section.info else None
            if target is not None and target.flags & SHF_ALLOC and not section.flags & SHF_ALLOC:
                yield section

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def is_code(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of many link addresses are in its code."""
        inside = np.zeros(len(addresses), np.bool_)
        for region in self.code_regions:
            inside |= addresses - np.uint64(region.address) < np.uint64(region.size)  # below the start it wraps round
        return inside

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
        for start, offset, size in self.in_file:
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

    @property
    def in_file(self) -> list[tuple[int, int, int]]:
        """(address, file offset, size) of everything that has both an address and bytes in the file: segments, or the
        sections of a module."""
        if self.kind is FileKind.REL:
            return [(s.address, s.offset, s.size) for s in self.sections if _has_bytes(s)]
        return [(s.address, s.offset, s.file_size) for s in self.segments if s.kind == PT_LOAD]


def _has_bytes(section: Section) -> bool:
    return bool(section.flags & SHF_ALLOC) and section.kind != SHT_NOBITS


def _holds(section: Section, address: int) -> bool:
    return _has_bytes(section) and 0 <= address - section.address < section.size


def open_image(path: Path, *, module: str | None = None, reading: Reading = AS_IT_SAYS) -> Image:
    """Read an image that may be rewritten or compared: LIEF has to read the same.

    Args:
        path: the ELF file: a linked kernel or firmware (EXEC, DYN) or a kernel module (REL); or a file that holds one,
            or of which one is made.
        module: what the probes' module field shall be; else the file's name without its ending.
        reading: what the user says of a file that does not say it itself.

    Raises:
        ImageError: one line that says what is wrong with the file.
    """
    try:
        return _read(path, module or module_name(path), read_again, reading)
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


def open_to_run(path: Path, *, module: str | None = None, reading: Reading = AS_IT_SAYS) -> Image:
    """Read an image without LIEF, which takes half as long to import as all else that a run begins with. What runs is
    what we read; nothing is claimed about the file to anyone else.

    Raises:
        ImageError: as `open_image`, for what we find by ourselves.
    """
    try:
        return glance(path, module=module, reading=reading)
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


def glance(path: Path, *, module: str | None = None, reading: Reading = AS_IT_SAYS) -> Image:
    """As `open_to_run`, for a message: its error has no path."""
    return _read(path, module or module_name(path), _unread, reading)


def check_twice(image: Image) -> None:
    """Let LIEF read an image that we read alone. Raises ImageError: it sees something else."""
    try:
        read_again(image.data, read_tables(image.data))
    except ImageError as error:
        raise ImageError(f"{image.path}: {error}") from None


def _unread(_data: NDArray[np.uint8], _tables: Tables) -> None:
    """There is no second reader."""


def open_debug_symbols(path: Path, image: Image) -> Symbols:
    """The symbols of a separate debug file of `image`, which may have no bytes of code (objcopy --only-keep-debug).

    Raises:
        ImageError: it cannot be read, has no symbols, or was not made from this image.
    """
    file = open_elf(path)
    try:
        _facts(file.header)
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None
    if not has_same_build_id(image, file):
        check_same_code(image, file)
    if not len(file.symbols):
        raise ImageError(f"{path}: no symbol table")
    return file.symbols


def architecture(path: Path) -> str:
    """The name of an image's architecture, whatever else may be wrong with it. Raises ImageError: it has none of
    ours."""
    return _facts(read_elf_header(contained(path).data)).name


def module_name(path: Path) -> str:
    """The module a file stands for: its name without .ko, .elf, .debug and the like."""
    name = path.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return visible(name or path.name)


def _read(
    path: Path, module: str, check: Callable[[NDArray[np.uint8], Tables], object], reading: Reading = AS_IT_SAYS
) -> Image:
    """`check` is the second reader of its tables."""
    file = contained(path, reading)
    data = file.data
    facts = _facts(read_elf_header(data))
    tables = read_tables(data)
    header = tables.header
    if not len(tables.segments) and header.kind is not FileKind.REL:
        raise ImageError("no program headers: there is nothing to load and nothing to patch")
    # Before anything is built from the tables: two readers must agree on what the file is.
    check(data, tables)
    segments, sections = segments_of(tables.segments), sections_of(data, header, tables.sections)
    regions = _code_regions(header, segments, sections)
    if not regions:
        raise ImageError("no code: no executable section or segment has bytes in the file")
    symbols = read_symbols(data, header, sections)
    relocations = read_relocations(data, header, segments, sections)
    return Image(
        path=path,
        module=module,
        facts=facts,
        data=data,
        header=header,
        segments=segments,
        sections=sections,
        code_regions=regions,
        symbols=symbols,
        relocations=relocations,
        packing=file.packing,
        container=file.container,
    )


def _facts(header: ElfHeader) -> ArchFacts:
    try:
        return arch_by_elf_machine(header.machine)
    except ImageError as error:
        name = _MACHINE_NAMES.get(header.machine)
        raise ImageError(f"an image for {name}: {error}" if name else str(error)) from None


def _code_regions(
    header: ElfHeader, segments: tuple[Segment, ...], sections: tuple[Section, ...]
) -> tuple[CodeRegion, ...]:
    """Executable sections, so that the .rodata of an RWX segment is not swept; without sections, executable
    segments."""
    loads = [segment for segment in segments if segment.kind == PT_LOAD and segment.file_size]
    wanted = SHF_ALLOC | SHF_EXECINSTR
    found = [
        CodeRegion(section.address, section.offset, section.size)
        for section in sections
        if section.kind == SHT_PROGBITS and section.flags & wanted == wanted and section.size
    ]
    # Section and segment must put the same bytes at the same address, or a patch would land elsewhere than it was
    # planned.
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
