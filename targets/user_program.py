"""An image -> whether it is for user mode, a program or library that a kernel loads; where its loader calls it."""

from typing import Final

import numpy as np

from kinst.targets.elf.header import PT_DYNAMIC, PT_INTERP
from kinst.targets.image import Image

_PT_TLS: Final = 7  # thread-local storage: a thread library sets it up
_NEEDED, _SONAME = 1, 14  # d_tag: the name of a library that is needed, and the image's own as one
_FUNCTIONS: Final = (12, 13)  # DT_INIT, DT_FINI
_ARRAYS: Final = ((25, 27), (26, 28), (32, 33))  # DT_INIT_ARRAY, DT_FINI_ARRAY, DT_PREINIT_ARRAY, and their sizes


def is_user_program(image: Image) -> bool:
    """Whether a loader of user mode is asked for: an interpreter, libraries, a name as one, thread-local storage."""
    kinds = {segment.kind for segment in image.segments}
    return bool(kinds & {PT_INTERP, _PT_TLS}) or any(tag in (_NEEDED, _SONAME) for tag, _ in _dynamic(image))


def called_by_loader(image: Image) -> list[int]:
    """The functions that a loader calls when it has loaded the image, and before it unloads it."""
    tags = dict(_dynamic(image))
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


def _dynamic(image: Image) -> list[tuple[int, int]]:
    """Tags and values."""
    dynamic = next((segment for segment in image.segments if segment.kind == PT_DYNAMIC), None)
    if dynamic is None:
        return []
    rows = image.data[dynamic.offset : dynamic.offset + dynamic.file_size]
    words = np.frombuffer(rows[: len(rows) // 16 * 16].tobytes(), "<u8").reshape(-1, 2)
    return [(tag, value) for tag, value in words.tolist()]
