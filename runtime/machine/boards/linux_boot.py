"""struct boot_params in memory, for a Linux kernel for amd64 that is started as its decompressor starts it.

Documentation/arch/x86/boot.rst, "64-bit Boot Protocol", and zero-page.rst:

    0x70 address of ACPI's RSDP
    0x1e8 entries of the memory map   0x1f1 setup header: 0x1fe 0xaa55  0x202 "HdrS"  0x206 version  0x210 boot loader
    0x211 flags  0x218 initrd: address, size  0x228 command line   0x2d0 memory map, 20 bytes a row: start, size, kind
"""

import struct
from typing import Final

from kinst.runtime.machine.boards.multiboot import Information, MemoryRange, Piece

_SIZE: Final = 0x1000
_VERSION: Final = 0x20F
_UNKNOWN_LOADER: Final = 0xFF
_LOADED_HIGH, _KASLR = 1, 2


def boot_parameters(
    command_line: str, memory: tuple[MemoryRange, ...], at: int, initrd: range | None, acpi: int
) -> Information:
    """The zero page at address `at` for a kernel at a random offset, followed by the command line."""
    page, text = bytearray(_SIZE), at + _SIZE
    struct.pack_into("<Q", page, 0x70, acpi)
    page[0x1E8] = len(memory)
    struct.pack_into("<H", page, 0x1FE, 0xAA55)
    struct.pack_into("<4sH", page, 0x202, b"HdrS", _VERSION)
    struct.pack_into("<BB", page, 0x210, _UNKNOWN_LOADER, _LOADED_HIGH | _KASLR)
    if initrd is not None:
        struct.pack_into("<II", page, 0x218, initrd.start, len(initrd))
    struct.pack_into("<I", page, 0x228, text)
    for row, one in enumerate(memory):
        struct.pack_into("<QQI", page, 0x2D0 + 20 * row, one.start, one.size, one.kind)
    return Information(at, (Piece(at, bytes(page)), Piece(text, command_line.encode() + b"\0")))
