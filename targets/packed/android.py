"""An Android boot image (mkbootimg), versions 0 to 4, or a vendor boot image -> what is in it.

    0 "ANDROID!"   versions 0 to 2: 8 kernel size, load   16 ramdisk size, load   24 second size, load   36 page size
        40 version   1632 (1) size and offset of the recovery's tree   1648 (2) size of the device tree
        the header, kernel, ramdisk, second, recovery's tree, device tree: each from a page on
    versions 3 and 4: 8 kernel size   12 ramdisk size   40 version; pages of 4096 bytes
    0 "VNDRBOOT"   8 version   12 page size   24 ramdisk size   2100 size of the device tree

Kernels are where their boot loader likes them: an Image, or compressed.
source.android.com/docs/core/architecture/bootloader/boot-image-header
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.errors import ImageError
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.reading import Reading

_MAGICS: Final = (b"ANDROID!", b"VNDRBOOT")
_FILE: Final = "Android boot image"
_PAGE: Final = 4096  # since version 3
_HEADER: Final = 2112
_WITH_PAGES: Final = 2  # the last version that says how large a page is
_NEWEST: Final = 4
_MOST_PAGE: Final = 1 << 16


def read_android(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    """The kernel of one, or the part that `--payload` names; None: it is no such file.

    Raises:
        ImageError: it is damaged, or has no kernel.
    """
    if not head.startswith(_MAGICS):
        return None
    header = data[:_HEADER].tobytes()
    parts = {name: (at, size) for name, at, size in _parts(header) if size}
    name = reading.payload or "kernel"
    if name not in parts:
        found = ", ".join(f"{one} ({size:,} bytes)" for one, (_, size) in parts.items()) or "nothing"
        raise ImageError(f"{_FILE}: there is no {name} in it, but {found}")
    at, size = parts[name]
    if at + size > len(data):
        raise ImageError(f"truncated: the {name} in this {_FILE} has {size:#x} bytes at {at:#x}")
    return Layer(f"{_FILE} ({name})", data[at : at + size], _refused, has_payloads=True)


def _parts(header: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, offset and size of each part, in the file's order."""
    if len(header) < _HEADER:
        raise ImageError(f"truncated: this {_FILE} ends in its header")
    if header.startswith(_MAGICS[1]):
        sizes, page = {"ramdisk": _word(header, 24), "dtb": _word(header, 2100)}, _word(header, 12)
        return _placed(sizes, page, _HEADER)
    version = _word(header, 40)
    if version > _NEWEST:
        version = 0  # before there were versions, the size of a tree was there
    if version > _WITH_PAGES:
        return _placed({"kernel": _word(header, 8), "ramdisk": _word(header, 12)}, _PAGE, _PAGE)
    sizes = {"kernel": _word(header, 8), "ramdisk": _word(header, 16), "second": _word(header, 24)}
    if version >= 1:
        sizes["recovery_dtbo"] = _word(header, 1632)
    if version >= _WITH_PAGES:
        sizes["dtb"] = _word(header, 1648)
    page = _word(header, 36)
    return _placed(sizes, page, page)


def _placed(sizes: dict[str, int], page: int, first: int) -> Iterator[tuple[str, int, int]]:
    if not 0 < page <= _MOST_PAGE:
        raise ImageError(f"damaged: this {_FILE} has pages of {page} bytes")
    at = first + -first % page
    for name, size in sizes.items():
        yield name, at, size
        at += size + -size % page


def _word(header: bytes, at: int) -> int:
    return int.from_bytes(header[at : at + 4], "little")


def _refused(_new: NDArray[np.uint8]) -> bytes:
    raise ImageError(
        f"{_FILE}: is read, and not written: take its kernel out (unpack_bootimg), patch that, and make it again "
        "(mkbootimg)"
    )
