"""The command line and memory of a machine -> tags in memory by which a boot loader describes them to a kernel, in
Multiboot 2.

Multiboot2 Specification 2.0, 3.6. The numbers about section headers are 32 bits wide, as in GRUB.
"""

import struct
from enum import IntEnum
from typing import Final

from kinst.runtime.machine.boards.multiboot import (
    LOADER_NAME,
    Information,
    MemoryRange,
    Piece,
    loaded_sections,
    upper_memory,
)
from kinst.targets.elf.header import SECTION_HEADER
from kinst.targets.image import Image

LOADER_MAGIC: Final = 0x36D7_6289  # in EAX


class _Tag(IntEnum):
    END = 0
    COMMAND_LINE = 1
    LOADER_NAME = 2
    BASIC_MEMORY = 4
    MEMORY_MAP = 6
    SECTIONS = 9


def multiboot2_information(
    image: Image, command_line: str, memory: tuple[MemoryRange, ...], at: int, free: int
) -> Information:
    """total_size  reserved  tags: type  size  content, each at a multiple of 8. Arguments as for version 1."""
    headers, names, tables = loaded_sections(image, free)
    rows = b"".join(struct.pack("<QQII", row.start, row.size, row.kind, 0) for row in memory)
    tags = [
        _tag(_Tag.COMMAND_LINE, command_line.encode() + b"\0"),
        _tag(_Tag.LOADER_NAME, LOADER_NAME),
        _tag(_Tag.BASIC_MEMORY, struct.pack("<II", memory[0].size >> 10, upper_memory(memory) >> 10)),
        _tag(_Tag.MEMORY_MAP, struct.pack("<II", 24, 0) + rows),
        _tag(_Tag.END, b""),
    ]
    if len(headers):
        numbers = struct.pack("<III", len(headers), SECTION_HEADER.itemsize, names)
        tags.insert(-1, _tag(_Tag.SECTIONS, numbers + headers.tobytes()))
    content = b"".join(tags)
    return Information(at, (Piece(at, struct.pack("<II", 8 + len(content), 0) + content), *tables))


def _tag(kind: _Tag, content: bytes) -> bytes:
    size = 8 + len(content)
    return struct.pack("<II", kind, size) + content + bytes(-size & 7)
