"""A program or library -> the functions that its loader calls."""

from typing import Final

import numpy as np

from kinst.targets.elf.dynamic import dynamic_entries
from kinst.targets.image import Image

_FUNCTIONS: Final = (12, 13)  # d_tag: DT_INIT, DT_FINI
_ARRAYS: Final = ((25, 27), (26, 28), (32, 33))  # DT_INIT_ARRAY, DT_FINI_ARRAY, DT_PREINIT_ARRAY, and their sizes


def called_by_loader(image: Image) -> list[int]:
    """The functions that a loader calls when it has loaded the image, and before it unloads it."""
    tags = dynamic_entries(image.data, image.segments)
    found = [tags[tag] for tag in _FUNCTIONS if tag in tags]
    for place, size in _ARRAYS:
        if place in tags and size in tags:
            found += _words(image, tags[place], tags[size] // 8)
    return found


def _words(image: Image, address: int, count: int) -> list[int]:
    """The words of a table as a loader finds them: by their relocations, else as they are in the file."""
    end = address + 8 * min(count, len(image.data) // 8)
    moved = dict(zip(image.relocations.address.tolist(), image.relocations.addend.tolist(), strict=True))
    places = np.arange(address, end, 8, dtype=np.uint64)
    offsets = image.offsets_of(places)
    stored = [int.from_bytes(image.data[at : at + 8].tobytes(), "little") if at >= 0 else 0 for at in offsets.tolist()]
    return [moved.get(place) or word for place, word in zip(places.tolist(), stored, strict=True)]
