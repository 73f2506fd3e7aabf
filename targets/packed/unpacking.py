"""A file that is no ELF file, and what the user says of it -> the ELF file in it, or made of it; and the way back.

One table has all kinds of files that hold images. Each reader gives a `Layer`, whose content may be another of these.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.errors import ImageError
from kinst.targets.packed.boot_image import boot_layer
from kinst.targets.packed.layer import Layer, Rebuild
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.values import dataclass

HEAD: Final = 0x264  # bytes at the start of a file that show what it is
_ELF: Final = b"\x7fELF"
_MOST_LAYERS: Final = 4
_ANDROID: Final = (b"ANDROID!", b"VNDRBOOT")
_BLOCK: Final = 1 << 16  # bytes that flash is erased by
_MOST_FLASH: Final = 256 << 20
_U_BOOT: Final = (b"\xd0\x0d\xfe\xed", b"\x27\x05\x19\x56")

# Reads a file of its kind, of which it gets the first bytes as well; None: it is of another kind.
Reader = Callable[[NDArray[np.uint8], bytes, Reading], Layer | None]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The ELF file of an image."""

    data: NDArray[np.uint8]
    packing: str = ""  # what kind of file holds it ("bzImage, xz"); "": it is the file itself
    rebuild: Rebuild | None = None  # makes such a file of another ELF file; None: it is the file itself, or cannot be
    has_headers: bool = True  # whether the ELF file is in it, or was made of the memory that is
    is_flat: bool = False  # whether that memory is in one piece, from its start to its end


def unpacked(data: NDArray[np.uint8], reading: Reading = AS_IT_SAYS) -> Unpacked:
    """The ELF file in a file. A file that is none of these is returned as it is.

    Raises:
        ImageError: it is damaged, of a kind that holds no ELF file, or `reading` is of another file.
    """
    layers, left = list[Layer](), reading
    for _ in range(_MOST_LAYERS):
        found = _layer(data, left, is_outermost=not layers)
        if found is None:
            break
        layers.append(found)
        data = found.inner
        left = replace(left, payload="") if found.has_payloads else left  # which was in that file
    _check_used(layers, reading, data)
    rebuilds = [layer.rebuild for layer in layers if layer.rebuild is not None]
    whole = _chained(rebuilds) if layers and len(rebuilds) == len(layers) else None
    names = ", ".join(layer.kind for layer in layers)
    has_headers, is_flat = all(layer.has_headers for layer in layers), any(layer.is_flat for layer in layers)
    return Unpacked(data, names, whole, has_headers, is_flat)


def _layer(data: NDArray[np.uint8], reading: Reading, *, is_outermost: bool) -> Layer | None:
    head = data[:HEAD].tobytes()
    if head.startswith(_ELF):
        return None
    if is_outermost and reading.address is not None:
        return _raw(data, reading)
    return next((found for reader in _READERS if (found := reader(data, head, reading)) is not None), None)


def _raw(data: NDArray[np.uint8], reading: Reading) -> Layer:
    from kinst.targets.packed.raw import read_raw

    return read_raw(data, reading)


def _boot_image(data: NDArray[np.uint8], head: bytes, _reading: Reading) -> Layer | None:
    return boot_layer(data, head)


def _records(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    if head[:1] not in (b":", b"S"):
        return None
    from kinst.targets.packed.records import read_records

    return read_records(data, head, reading)


def _u_boot(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    if head[:4] not in _U_BOOT:
        return None
    from kinst.targets.packed.fit import read_fit
    from kinst.targets.packed.uimage import read_uimage

    return read_fit(data, head, reading) or read_uimage(data, head, reading)


def _pe(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    if not head.startswith((b"MZ", b"VZ")):
        return None
    from kinst.targets.packed.pe_image import read_pe, read_te

    return read_te(data, head, reading) if head.startswith(b"VZ") else read_pe(data, head, reading)


def _android(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    if head[:8] not in _ANDROID:
        return None
    from kinst.targets.packed.android import read_android

    return read_android(data, head, reading)


def _firmware(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    """A flash image is of whole blocks; in another file something is looked for if the user knows that it is there."""
    if not 0 < len(data) <= _MOST_FLASH or (head[40:44] != b"_FVH" and not reading.payload and len(data) % _BLOCK):
        return None
    from kinst.targets.packed.cbfs import read_cbfs
    from kinst.targets.packed.firmware_volume import read_volumes

    return read_cbfs(data, head, reading) or read_volumes(data, head, reading)


_READERS: Final[tuple[Reader, ...]] = (_boot_image, _records, _u_boot, _pe, _android, _firmware)


def _chained(rebuilds: Sequence[Rebuild]) -> Rebuild:
    """From the innermost layer to the outermost one."""

    def whole(new: NDArray[np.uint8]) -> bytes:
        return reduce(lambda content, step: step(np.frombuffer(content, np.uint8)), reversed(rebuilds), new.tobytes())

    return whole


def _check_used(layers: Sequence[Layer], reading: Reading, data: NDArray[np.uint8]) -> None:
    """What the user says must be about this file."""
    if reading == AS_IT_SAYS or any(not layer.has_headers for layer in layers):
        return
    what = ", ".join(layer.kind for layer in layers) or ("ELF" if data[:4].tobytes() == _ELF else "")
    if any(layer.has_payloads for layer in layers) and not reading.machine and reading.entry is None:
        return
    if not what:
        raise ImageError(f"no file of a known kind: {reading} does not say where it is loaded (--raw MACHINE@ADDRESS)")
    raise ImageError(f"{what} says itself what is in it and where it is loaded: leave out {reading}")
