"""An image and patches -> its bytes with them. A copy is patched: the file does not change."""

import mmap
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kinst.targets.errors import ManifestError
from kinst.targets.image import Image
from kinst.targets.patch import Patch


def patched_data(image: Image, patches: Sequence[Patch]) -> NDArray[np.uint8]:
    """The image's bytes with the patches' code in place, mapped from a temporary file without a name."""
    if not patches:
        return image.data
    with tempfile.TemporaryFile(prefix="kinst-") as file:
        file.write(image.data.data)
        for offset, patch in placed(image, patches):
            file.seek(offset)
            file.write(patch.code)
        file.flush()
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def placed(image: Image, patches: Sequence[Patch]) -> Iterator[tuple[int, Patch]]:
    """The file offset of each patch.

    Raises:
        ManifestError: the image has no bytes there.
    """
    for patch in patches:
        offset, last = image.offset_of(patch.address), image.offset_of(patch.end - 1)
        if offset is None or last is None or last - offset != len(patch.code) - 1:
            raise ManifestError(f"{image.path}: {patch.address:#x} is patched, but not in the file")
        yield offset, patch
