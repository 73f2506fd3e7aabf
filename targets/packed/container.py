"""The path of an image file, and what the user says of it -> its ELF file, and how the file is written again."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.file import map_file
from kinst.targets.errors import ImageError
from kinst.targets.packed.layer import Container
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.packed.unpacking import Unpacked, unpacked
from kinst.targets.values import dataclass

_ELF: Final = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Contained:
    """The ELF file of an image, and what it was in."""

    data: NDArray[np.uint8]
    packing: str = ""  # what kind of file holds it ("bzImage, xz"); "": it is the file itself
    container: Container | None = None  # None: it is the file itself, or in one that is not written again


def contained(path: Path, reading: Reading = AS_IT_SAYS) -> Contained:
    """Read a file. One that was patched is read as it was before.

    Raises:
        ImageError: without the file's name: it cannot be read, is damaged, or `reading` is of another file.
        ManifestError: what is beside it is damaged.
    """
    data = map_file(path)
    if data[: len(_ELF)].tobytes() == _ELF:
        return Contained(unpacked(data, reading).data)
    from kinst.targets.packed.beside import find_beside, unpacked_beside  # hashlib and more, for few images

    beside = find_beside(path, data)
    if beside is None:
        return _of(unpacked(data, reading), reading, data)
    if reading not in (AS_IT_SAYS, beside.reading):
        raise ImageError(f"was patched when it was read with {beside.reading}: leave out {reading}")
    return _of(unpacked_beside(data, beside), beside.reading, beside.original)


def _of(found: Unpacked, reading: Reading, original: NDArray[np.uint8]) -> Contained:
    if found.rebuild is None:
        return Contained(found.data, found.packing)
    container = Container(reading, original, found.rebuild, found.has_headers, found.is_flat)
    return Contained(found.data, found.packing, container)
