"""An image -> the addresses of code that its data holds."""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import unique
from kinst.targets.elf.header import PT_LOAD, FileKind
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image


def code_pointers(image: Image) -> NDArray[np.uint64]:
    """What relocations store, and every aligned word of data that might be an address of code.

    In a position-independent file words without a relocation are numbers.
    """
    found = [image.relocations.pointers]
    if image.kind is FileKind.DYN and is_hosted(image):
        return unique(np.concatenate([found[0], _relocated_words(image)]))
    low = np.uint64(min(region.address for region in image.code_regions))
    high = np.uint64(max(region.address + region.size for region in image.code_regions))
    for offset, end in _data_spans(image):
        words = image.data[offset : offset + (end - offset) // 8 * 8].view("<u8")
        found.append(words[(words >= low) & (words < high)])
    return unique(np.concatenate(found))


def _relocated_words(image: Image) -> NDArray[np.uint64]:
    """The words that relocations without an addend (RELR) move."""
    offsets = image.offsets_of(image.relocations.address[~image.relocations.relative])
    offsets = offsets[(offsets >= 0) & (offsets + 8 <= len(image.data))]
    words: NDArray[np.uint64] = image.data[offsets[:, None] + np.arange(8)].view("<u8").ravel().astype(np.uint64)
    return words


def _data_spans(image: Image) -> list[tuple[int, int]]:
    """File offsets, at aligned addresses, of what is loaded and is no code region."""
    spans = []
    for segment in image.segments:
        if segment.kind != PT_LOAD:
            continue
        position, end = segment.offset, segment.offset + segment.file_size
        for region in sorted(image.code_regions, key=lambda region: region.offset):
            if position <= region.offset < end:
                spans.append((position, region.offset))
                position = region.offset + region.size
        spans.append((position, end))
    return [(-(-start // 8) * 8, end) for start, end in spans if end - start >= 16]
