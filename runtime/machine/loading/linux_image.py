"""A kernel with Linux's boot header -> where in RAM it must be loaded, whatever physical addresses it was linked at.

arm64 and riscv64 share the header, which begins the first segment (Documentation/arch/{arm64,riscv}/boot*.rst):

    0 two instructions   8 text_offset   16 image_size   24 flags   32 ...   56 "ARM\\x64" or "RSC\\x05"   60 ...
"""

from typing import TYPE_CHECKING, Final

from kinst.targets.arch.facts import ArchFacts

if TYPE_CHECKING:
    from kinst.targets.elf.sections import Segment
    from kinst.targets.image import Image

HEADER_SIZE: Final = 64
_ALIGNMENT: Final = 0x20_0000  # text_offset counts from a 2 MiB boundary on both machines


def text_offset(image: "Image", first: "Segment") -> int | None:
    """How far a kernel's first byte must be from a 2 MiB boundary in RAM; None if this is no such kernel."""
    if first.file_size < HEADER_SIZE:
        return None
    header = image.data[first.offset : first.offset + HEADER_SIZE].tobytes()
    if not has_boot_header(header, image.facts):
        return None
    offset = int.from_bytes(header[8:16], "little")
    return offset or _ALIGNMENT  # 0 (arm64): any 2 MiB boundary; RAM's first one is left to the boot loader


def size_in_ram(start: bytes, arch: ArchFacts) -> int:
    """The bytes of RAM that a kernel needs, by the header in its first bytes (image_size); 0: this is no kernel."""
    return int.from_bytes(start[16:24], "little") if has_boot_header(start, arch) else 0


def may_start_at(address: int, offset: int) -> bool:
    """Whether a kernel's first byte may be at `address`, given its `text_offset`."""
    return (address - offset) % _ALIGNMENT == 0


def has_boot_header(start: bytes, arch: ArchFacts) -> bool:
    """Whether `start`, the first bytes of an image, has the boot header."""
    return start[56:60] == arch.linux.boot_magic
