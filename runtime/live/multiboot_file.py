"""A 64-bit image with a Multiboot header -> the same memory in a 32-bit ELF file, which QEMU's -kernel takes.

QEMU knows the header only in a file's first 8 KiB, and takes no 64-bit file with one, nor program headers beyond 4 GiB.
What it enters is the same in both: a physical address in 32-bit mode (Multiboot Specification 0.6.96, 3.1 to 3.2).

    0      ELF header, program headers, a copy of the Multiboot header
    ...    the bytes of each segment
"""

import struct
from typing import Final

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import UsageError
from kinst.targets.image import Image
from kinst.targets.kernels.multiboot import Version, boot_header

# Elf32_Ehdr and Elf32_Phdr (System V ABI, chapter 4 and 5).
_HEADER: Final = struct.Struct("<4sBBBB8xHHIIIIIHHHHHH")
_PROGRAM_HEADER: Final = struct.Struct("<8I")
_MULTIBOOT: Final = struct.Struct("<3I")
_CLASS32, _LITTLE_ENDIAN, _CURRENT, _EXECUTABLE, _EM_386 = 1, 1, 1, 2, 3
_ALIGNMENT: Final = 16
_END: Final = 1 << 32


def is_for_multiboot(image: Image) -> bool:
    """Whether an image is entered by a Multiboot header that leaves it to the program headers what is loaded."""
    header = boot_header(image)
    return header is not None and header.version is Version.ONE and header.load is None


def as_32_bit(image: Image) -> list[tuple[int, bytes | memoryview]]:
    """The file, as offsets and bytes; all others are zero. Raises UsageError: it belongs beyond 4 GiB."""
    header = boot_header(image)
    assert header is not None, "see `is_for_multiboot`"
    loads = [one for one in image.segments if one.kind == PT_LOAD and one.size]
    entry = image.entry if header.entry is None else header.entry
    ends = [one.load_address + one.size for one in loads]
    if max(entry, *ends) >= _END:
        first = min(one.load_address for one in loads)
        raise UsageError(f"--on: {image.path}: belongs at {first:#x} and above, and Multiboot ends at 4 GiB")
    at = _HEADER.size + _PROGRAM_HEADER.size * len(loads) + _MULTIBOOT.size
    rows, found = [], list[tuple[int, bytes | memoryview]]()
    for one in sorted(loads, key=lambda one: one.load_address):
        at += -at % _ALIGNMENT
        sizes = one.file_size, one.size, one.flags, _ALIGNMENT
        rows.append(_PROGRAM_HEADER.pack(PT_LOAD, at, one.load_address, one.load_address, *sizes))
        found.append((at, image.data[one.offset : one.offset + one.file_size].data))
        at += one.file_size
    magic, flags = int(Version.ONE), header.flags
    multiboot = _MULTIBOOT.pack(magic, flags, -(magic + flags) % _END)
    return [(0, b"".join((_elf_header(entry, len(rows)), *rows, multiboot))), *found]


def _elf_header(entry: int, count: int) -> bytes:
    identification = b"\x7fELF", _CLASS32, _LITTLE_ENDIAN, _CURRENT, 0
    sizes = _HEADER.size, _PROGRAM_HEADER.size, count, 0, 0, 0
    return _HEADER.pack(*identification, _EXECUTABLE, _EM_386, _CURRENT, entry, _HEADER.size, 0, 0, *sizes)
