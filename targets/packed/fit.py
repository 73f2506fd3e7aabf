"""A FIT image of U-Boot (a device tree with files in it: doc/usage/fit/source_file_format.rst) -> the payload that is
asked for; and back, with its hashes made anew.

    /images/NAME   type, arch, os, compression, load, entry   data: here; or data-size and data-offset, from the end of
                   the tree, 4-aligned; or data-position, from the start of the file
        hash-N     algo, value
    /configurations   default; each: kernel, firmware, loadables, fdt
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.device_tree import HEADER, MAGIC, Blob, Branch, TreeError, Value, read_blob
from kinst.targets.errors import ImageError
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.payload import Payload, chosen, layer_of
from kinst.targets.packed.reading import Reading
from kinst.targets.values import dataclass

_FILE: Final = "FIT image"
_LARGEST: Final = 1 << 30
_NUMBERS: Final = (4, 8)  # bytes of an address
_DEFAULTS: Final = ("kernel", "firmware", "loadables")
_DIGESTS: Final = ("md5", "sha1", "sha256", "sha384", "sha512")


@dataclass(frozen=True, slots=True)
class _Fit:
    """A file and its tree."""

    data: NDArray[np.uint8]
    blob: Blob

    def bytes_of(self, node: Branch, name: str) -> bytes | None:
        found = node.values.get(name)
        return None if found is None else self.data[found.offset : found.offset + found.size].tobytes()

    def text(self, node: Branch, name: str) -> str:
        found = self.bytes_of(node, name) or b""
        return found.split(b"\0")[0].decode("ascii", "backslashreplace")

    def number(self, node: Branch, name: str) -> int | None:
        found = self.bytes_of(node, name)
        return int.from_bytes(found, "big") if found is not None and len(found) in _NUMBERS else None


def read_fit(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    """Read one; None: it is none.

    Raises:
        ImageError: it is damaged, or a device tree without images.
    """
    if not head.startswith(MAGIC):
        return None
    try:
        fit = _Fit(data, read_blob(data.tobytes(), _LARGEST))
    except TreeError as error:
        raise ImageError(f"{_FILE}: {error}") from None
    images = fit.blob.root.child("images")
    if images is None:
        raise ImageError("a device tree, and no FIT image: it has no node /images: --dtb takes device trees")
    payloads = {node.name: _payload(fit, node) for node in images.children}
    one = chosen(_FILE, [*payloads.values()], reading, [*_defaults(fit)])
    node = next(node for node in images.children if node.name == one.name)
    return layer_of(_FILE, one, reading, lambda new: _stored(fit, node, new))


def _payload(fit: _Fit, node: Branch) -> Payload:
    at = _place(fit, node)
    if at.offset + at.size > len(fit.data):
        raise ImageError(f"truncated: {node.name} of this {_FILE} has {at.size:#x} bytes at {at.offset:#x}")
    kind, machine, compression = (fit.text(node, name) for name in ("type", "arch", "compression"))
    load, entry = fit.number(node, "load"), fit.number(node, "entry")
    return Payload(node.name, kind, machine, compression, load, entry, fit.data[at.offset : at.offset + at.size])


def _place(fit: _Fit, node: Branch) -> Value:
    """Where the data of an image is in the file."""
    inside = node.values.get("data")
    size = fit.number(node, "data-size")
    if inside is not None or size is None:
        return inside or Value(0, 0)
    position, offset = fit.number(node, "data-position"), fit.number(node, "data-offset")
    return Value(position if position is not None else _outside(fit) + (offset or 0), size)


def _outside(fit: _Fit) -> int:
    """Where data begin that are not in the tree."""
    return fit.blob.total + 3 & ~3


def _defaults(fit: _Fit) -> Iterator[str]:
    """Names of images that the default configuration starts or loads."""
    configurations = fit.blob.root.child("configurations")
    if configurations is None:
        return
    node = configurations.child(fit.text(configurations, "default"))
    for name in _DEFAULTS if node is not None else ():
        assert node is not None, "it was found"
        yield from (fit.bytes_of(node, name) or b"").decode("ascii", "backslashreplace").split("\0")


def _stored(fit: _Fit, node: Branch, new: bytes) -> bytes:
    """The file with other data of an image."""
    file, was = bytearray(fit.data.tobytes()), _place(fit, node)
    for child in node.children:
        value = child.values.get("value")
        if child.name.startswith("hash") and value is not None:
            _put(file, value, _hash(fit.text(child, "algo"), new, value, child.name))
    if "data" in node.values:
        return _spliced(fit, file, was, new)
    if len(new) == was.size:
        file[was.offset : was.offset + was.size] = new
        return bytes(file)
    # At the end of the file, and the old data stay: others may be right behind them.
    file += bytes(-len(file) % 4)
    at = len(file)
    _put_number(fit, file, node, "data-size", len(new))
    if "data-position" in node.values:
        _put_number(fit, file, node, "data-position", at)
    else:
        _put_number(fit, file, node, "data-offset", at - _outside(fit))
    return bytes(file) + new


def _hash(algorithm: str, data: bytes, value: Value, name: str) -> bytes:
    if algorithm == "crc32":
        found = struct.pack(">I", zlib.crc32(data))
    elif algorithm in _DIGESTS:
        found = hashlib.new(algorithm, data).digest()
    else:
        raise ImageError(
            f"{_FILE}: {name}: a hash of kind {algorithm!r} cannot be made anew: write it without that hash"
        )
    if len(found) != value.size:
        raise ImageError(f"{_FILE}: damaged: {name} has {value.size} bytes, and {algorithm} has {len(found)}")
    return found


def _put(file: bytearray, value: Value, new: bytes) -> None:
    file[value.offset : value.offset + value.size] = new


def _put_number(fit: _Fit, file: bytearray, node: Branch, name: str, number: int) -> None:
    value = node.values.get(name)
    if value is None or value.size not in _NUMBERS or number >= 1 << 8 * value.size:
        raise ImageError(f"{_FILE}: {node.name} has no room for {number:#x} in {name}")
    _put(file, value, number.to_bytes(value.size, "big"))


def _spliced(fit: _Fit, file: bytearray, was: Value, new: bytes) -> bytes:
    """The tree with a longer or shorter value: what is behind it in the file moves, and the header says so."""
    room = was.size + 3 & ~3
    padded = new + bytes(-len(new) % 4)
    moved = len(padded) - room
    file[was.offset - 8 : was.offset - 4] = struct.pack(">I", len(new))  # PROPERTY, size, name, value
    file[was.offset : was.offset + room] = padded
    fields = list(HEADER.unpack_from(fit.data[: HEADER.size].tobytes()))
    fields[1] += moved
    for index in (3, 4):  # strings, reservations: the structure block begins before the value
        if fields[index] > was.offset:
            fields[index] += moved
    if fields[5] >= 17:  # older trees do not say how long the structure is
        fields[9] += moved
    file[: HEADER.size] = HEADER.pack(*fields)
    return bytes(file)
