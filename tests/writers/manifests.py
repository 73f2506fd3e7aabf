"""Patched files with other manifests."""

from pathlib import Path

import numpy as np

from kinst.targets.elf.header import SECTION_HEADER
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import SECTION


def with_manifest(patched: Path, content: bytes) -> bytes:
    """A patched file with another manifest, which lies where it lay if there is room, or else at the end."""
    image, data = open_image(patched), bytearray(patched.read_bytes())
    section = image.section(SECTION)
    assert section is not None
    offset = section.offset
    if len(content) > section.size:
        offset = len(data)
        data += content
    data[offset : offset + len(content)] = content
    row = np.frombuffer(data, SECTION_HEADER, 1, image.header.shoff + section.index * SECTION_HEADER.itemsize)
    row["offset"], row["size"] = offset, len(content)
    return bytes(data)
