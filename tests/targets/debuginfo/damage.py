"""Copies of images whose debug information is damaged at random places, always the same for a seed."""

import random
from pathlib import Path

from kinst.targets.image import Image, open_image


def damaged(image: Image, sections: tuple[str, ...], path: Path, seed: int) -> Image:
    """A copy with one byte in fifty of some sections overwritten."""
    data, choose = bytearray(image.data.tobytes()), random.Random(seed)
    for name in sections:
        section = image.section(name)
        assert section is not None
        for _ in range(section.size // 50):
            data[section.offset + choose.randrange(section.size)] = choose.randrange(256)
    path.write_bytes(data)
    return open_image(path)
