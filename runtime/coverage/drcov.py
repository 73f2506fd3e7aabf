"""Coverage -> a file in the format of DynamoRIO's drcov, version 2: plug-ins of Ghidra, IDA and Binary Ninja read it.

A text with a table of modules, then the table of blocks, 8 bytes each: where it begins, from the module's base (32
bits), its size in bytes (16), and the number of the module (16). There are no counts: a block is there if it ran.
"""

import struct
from collections.abc import Iterator
from typing import Final

from kinst.runtime.coverage.document import Coverage, CoveredImage
from kinst.targets.visible import visible

_BLOCK: Final = struct.Struct("<IHH")
_LARGEST: Final = 0xFFFF  # bytes of a block
_OFFSETS: Final = 1 << 32
_MODULES: Final = 1 << 16


def drcov(coverage: Coverage) -> Iterator[bytes]:
    """The pieces of the file. What is more than 4 GiB behind its image's base is left out: it has no code."""
    images = coverage.images[:_MODULES]
    head = ["DRCOV VERSION: 2", "DRCOV FLAVOR: kinst", f"Module Table: version 2, count {len(images)}"]
    head.append("Columns: id, base, end, entry, checksum, timestamp, path")
    for number, image in enumerate(images):
        # Readers split the line at commas, and take the rest for the path.
        path = visible(image.path).replace(",", "_")
        where = f"{image.base:#018x}, {image.end:#018x}, {image.entry:#018x}"
        head.append(f"{number:3}, {where}, 0x00000000, 0x00000000, {path}")
    blocks = [_BLOCK.pack(*block, number) for number, image in enumerate(images) for block in _blocks(image)]
    yield "\n".join([*head, f"BB Table: {len(blocks)} bbs", ""]).encode("utf-8", "backslashreplace")
    yield from blocks


def _blocks(image: CoveredImage) -> Iterator[tuple[int, int]]:
    """Offset and size of each block that ran; one that is too large is several."""
    for start, size in _ran(image):
        offset = start - image.base
        while size and 0 <= offset < _OFFSETS:
            part = min(size, _LARGEST)
            yield offset, part
            offset, size = offset + part, size - part


def _ran(image: CoveredImage) -> Iterator[tuple[int, int]]:
    for one in image.ran:
        for block in one.blocks:
            if block.runs:
                yield one.address + block.offset, block.size
        if not one.blocks:
            yield one.address, one.size
    for address, size, _ in image.elsewhere:
        yield address, size
