"""The command line and memory of a machine -> structures in memory by which a boot loader describes them to a kernel,
in Multiboot 1 and PVH.

Multiboot specification 0.6.96, sections 3.1 to 3.3; PVH as in Xen's public/arch-x86/hvm/start_info.h.
"""

import struct
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import (
    ELF_HEADER,
    PT_NOTE,
    SECTION_HEADER,
    SHF_ALLOC,
    SHT_STRTAB,
    SHT_SYMTAB,
    read_elf_header,
)
from kinst.targets.elf.notes import notes_in
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.values import dataclass

LOADER_MAGIC: Final = 0x2BAD_B002  # in EAX
PVH_COMMAND_LINE: Final = "earlyprintk=ttyS0 console=ttyS0"  # without it Linux prints to no serial line
_PVH_MAGIC: Final = 0x336E_C578
_NOTE_PHYS32_ENTRY: Final = 18
LOADER_NAME: Final = b"kinst-run\0"
_PAGE: Final = 4096


class MemoryKind(IntEnum):
    """Kinds of memory, as numbered by BIOS call E820, Multiboot and PVH."""

    AVAILABLE = 1
    RESERVED = 2


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """A row of the memory map."""

    start: int
    size: int
    kind: MemoryKind


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes for the guest's memory."""

    address: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Information:
    """What to write before the start, and the address of the structure itself."""

    address: int
    pieces: tuple[Piece, ...]


def pvh_entry(image: Image) -> int | None:
    """The physical 32-bit entry that a Xen note gives; None without one."""
    for segment in image.segments:
        if segment.kind != PT_NOTE:
            continue
        for note in notes_in(image.data[segment.offset : segment.offset + segment.file_size].tobytes()):
            if note.kind == _NOTE_PHYS32_ENTRY and note.owner.startswith(b"Xen\0"):
                return int.from_bytes(note.description[:8], "little")
    return None


def multiboot_information(
    image: Image, command_line: str, memory: tuple[MemoryRange, ...], at: int, free: int
) -> Information:
    """The structure at `at` (below 1 MiB), followed by its tables, and the image's symbol tables from `free` on.

    A kernel's debugger reads symbols through the section headers, as after GRUB. Only symbol and string tables are
    loaded, not debug information. A patched image gets what the original would get.

        0 flags   4 mem_lower  8 mem_upper  12 boot_device  16 cmdline  20 mods_count  24 mods_addr  28 ELF: num, size,
        addr, shndx   44 mmap_length  48 mmap_addr  52 drives (2)  60 config_table  64 boot_loader_name ...
    """
    headers, names, tables = loaded_sections(image, free)
    rows = b"".join(struct.pack("<IQQI", 20, row.start, row.size, row.kind) for row in memory)
    parts = (command_line.encode() + b"\0", LOADER_NAME, rows, headers.tobytes())
    addresses = []
    position = at + 128
    for part in parts:
        addresses.append(position)
        position += len(part) + 15 & ~15
    structure = struct.pack(
        "<3I4xI8x4I2I12xI",
        0x001 | 0x004 | 0x040 | 0x200 | (0x020 if len(headers) else 0),
        memory[0].size >> 10,
        upper_memory(memory) >> 10,
        addresses[0],
        *(len(headers), SECTION_HEADER.itemsize, addresses[3], names),
        *(len(rows), addresses[2]),
        addresses[1],
    )
    texts = (Piece(address, part) for address, part in zip(addresses, parts, strict=True))
    return Information(at, (Piece(at, structure), *texts, *tables))


def upper_memory(memory: tuple[MemoryRange, ...]) -> int:
    """Bytes of RAM from 1 MiB up to the first gap."""
    return max((row.size for row in memory if row.start == 1 << 20), default=0)


def loaded_sections(image: Image, free: int) -> tuple[NDArray[np.void], int, tuple[Piece, ...]]:
    """The section headers, with addresses for the tables that are loaded; the row of their names; and these tables."""
    manifest = find_manifest(image)
    header = read_elf_header(np.frombuffer(_original(image, manifest, 0, ELF_HEADER.size), np.uint8))
    size = header.shnum * SECTION_HEADER.itemsize
    headers = np.frombuffer(_original(image, manifest, header.shoff, size), SECTION_HEADER).copy()
    pieces = []
    position = free + _PAGE - 1 & -_PAGE
    for row in headers:
        if row["kind"] not in (SHT_SYMTAB, SHT_STRTAB) or row["flags"] & SHF_ALLOC:
            continue
        row["address"] = position
        pieces.append(Piece(position, _original(image, manifest, int(row["offset"]), int(row["size"]))))
        position += int(row["size"]) + 15 & ~15
    return headers, header.shstrndx, tuple(pieces)


def _original(image: Image, manifest: Manifest | None, offset: int, size: int) -> bytes:
    """Bytes of the file before it was patched. Outside of code, only headers may differ."""
    content = bytearray(image.data[offset : offset + size])
    for start, data in () if manifest is None else manifest.restore:
        first, last = max(start, offset), min(start + len(data), offset + size)
        if first < last:
            content[first - offset : last - offset] = data[first - start : last - start]
    return bytes(content)


def pvh_information(
    command_line: str, memory: tuple[MemoryRange, ...], at: int, module: range | None = None, acpi: int = 0
) -> Information:
    """struct hvm_start_info, version 1, followed by the memory map and the command line.

    0 magic  4 version  8 flags  12 nr_modules  16 modlist  24 cmdline  32 rsdp  40 memmap  48 entries  52 reserved
    """
    rows = b"".join(struct.pack("<QQII", row.start, row.size, row.kind, 0) for row in memory)
    modules = b"" if module is None else struct.pack("<QQQQ", module.start, len(module), 0, 0)
    table, list_, text = at + 64, at + 64 + len(rows), at + 64 + len(rows) + len(modules)
    counted = (1, list_) if modules else (0, 0)
    structure = struct.pack("<IIIIQQQQII", _PVH_MAGIC, 1, 0, *counted, text, acpi, table, len(memory), 0)
    pieces = ((at, structure), (table, rows), (list_, modules), (text, command_line.encode() + b"\0"))
    return Information(at, tuple(Piece(address, content) for address, content in pieces if content))
