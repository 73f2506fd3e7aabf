"""Where an image starts to run, and which part of it runs in another mode than the rest."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import CodeRegion, Image

# Magic -> how many words, from it on, sum to 0. Multiboot 0.6.96, 3.1.1: magic, flags, checksum. Multiboot2 2.0, 3.1.1:
# magic, architecture, length, checksum. The header is 4-aligned in the first 8192 or 32768 bytes.
_CHECKED_WORDS: Final = {0x1BADB002: 3, 0xE85250D6: 4}
_SEARCHED: Final = 32768


def entry_point(image: Image) -> int | None:
    """The link address of the first instruction in the machine's own mode; None if it is not known.

    A kernel's e_entry may be the physical address (amd64 Linux). With a Multiboot header the code there is 32-bit.
    """
    if startup32(image) is not None:
        return None
    if _in_code(image, image.entry):
        return image.entry
    for segment in image.segments:
        inside = image.entry - segment.load_address
        if segment.kind == PT_LOAD and 0 <= inside < segment.file_size and _in_code(image, segment.address + inside):
            return segment.address + inside
    return None


def _in_code(image: Image, address: int) -> bool:
    return any(0 <= address - region.address < region.size for region in image.code_regions)


def startup32(image: Image) -> CodeRegion | None:
    """The region of a Multiboot image's 32-bit start. It decodes as 64-bit code, but into the wrong instructions."""
    for region in image.code_regions:
        head: NDArray[np.uint8] = image.data[region.offset : region.offset + min(region.size, _SEARCHED)]
        words = head[: len(head) // 4 * 4].view("<u4")
        for place in np.flatnonzero(np.isin(words, list(_CHECKED_WORDS))).tolist():
            checked = words[place : place + _CHECKED_WORDS[int(words[place])]]
            if int(checked.sum(dtype=np.uint64)) % (1 << 32) == 0:
                return region
    return None
