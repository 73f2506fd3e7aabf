"""The manifest beside a patched file that is no ELF file: what such a file has no room for.

The image is the ELF file that was made of the file's memory, and then patched. It is kept here without that memory,
which is in the file. So is what was in the file before, as far as it differs: the way back is exact.

    0   8  magic "KINSTFIL"
    8   4  format version: 1
   12   4  size of the JSON head that follows
   16      JSON head: how the file is read, sizes and SHA-256 of the original, sizes of what follows
           one frame of zstd: (offset, size) of what differs, `<u8`; the original's bytes there; the ELF file

All numbers little-endian. The content is untrusted.
"""

import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.compression import zstd_content, zstd_frame
from kinst.targets.elf.file import map_file
from kinst.targets.errors import ManifestError
from kinst.targets.packed.layer import Container
from kinst.targets.packed.memory import filled, memory_of
from kinst.targets.packed.reading import Reading, read_reading
from kinst.targets.packed.unpacking import Unpacked, unpacked
from kinst.targets.values import dataclass

SUFFIX: Final = ".manifest"
_MAGIC: Final = b"KINSTFIL"
_START: Final = struct.Struct("<8sII")
_VERSION: Final = 1
_MOST_HEAD: Final = 1 << 16
_LARGEST: Final = 1 << 30
_NEAR: Final = 8  # bytes that are alike between two that differ: cheaper in one piece
_DAMAGES: Final = (ValueError, LookupError, TypeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Beside:
    """What a manifest beside a file says."""

    reading: Reading
    original: NDArray[np.uint8]  # the file before it was patched
    elf: NDArray[np.uint8]  # the patched ELF file; of the file's memory it has zeros. Empty: it is in the file


def path_beside(path: Path) -> Path:
    """Where the manifest of a file is."""
    return path.with_name(path.name + SUFFIX)


def find_beside(path: Path, data: NDArray[np.uint8]) -> Beside | None:
    """The manifest beside a file that holds `data`; None: there is none.

    Raises:
        ManifestError: it is damaged, or of another file.
    """
    manifest = path_beside(path)
    if not manifest.is_file() or len(content := map_file(manifest)) < _START.size:
        return None
    magic, version, size = _START.unpack(content[: _START.size].tobytes())
    if magic != _MAGIC:
        return None
    if version != _VERSION:
        raise ManifestError(f"{manifest}: is of format {version}, and this kinst-rewrite reads {_VERSION}")
    try:
        return _read(content.data[_START.size :], size, data)
    except _DAMAGES as error:
        raise ManifestError(f"{manifest}: damaged, or not of this {path.name}: {error}") from None


def unpacked_beside(data: NDArray[np.uint8], beside: Beside) -> Unpacked:
    """The patched ELF file of a patched file; what is made of another one begins with the original file."""
    found = unpacked(data, beside.reading)
    elf = filled(beside.elf, memory_of(found.data)) if len(beside.elf) else found.data
    original = unpacked(beside.original, beside.reading)
    return replace(original, data=elf)


def manifest_beside(container: Container, new: bytes, elf: NDArray[np.uint8]) -> bytes:
    """The manifest of a file that was patched.

    Args:
        container: the file before.
        new: the file as it is now.
        elf: its image now.
    """
    reading, original = container.reading, container.original
    places = _differences(original, np.frombuffer(new, np.uint8))
    was = b"".join(original[start : start + size].tobytes() for start, size in places.tolist())
    husk = np.zeros(0, np.uint8) if container.has_headers else elf.copy()
    if len(husk):
        before = memory_of(unpacked(original, reading).data)
        for span in memory_of(husk):
            if any(one.address <= span.address < one.end for one in before):
                span.data[:] = 0
    body = places.tobytes() + was + husk.tobytes()
    head = {
        "reading": reading.values(), "size": len(original), "sha256": hashlib.sha256(original.data).hexdigest(),
        "places": len(places), "undo": len(was), "elf": len(husk),
    }  # fmt: skip
    text = json.dumps(head, separators=(",", ":")).encode()
    return _START.pack(_MAGIC, _VERSION, len(text)) + text + zstd_frame(memoryview(body))


def _differences(old: NDArray[np.uint8], new: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(n, 2) offset and size of what must be put into `new` to make `old` of it, once that has its size."""
    differ = np.ones(len(old), np.bool_)
    both = min(len(old), len(new))
    differ[:both] = old[:both] != new[:both]
    at = np.flatnonzero(differ)
    if not len(at):
        return np.zeros((0, 2), "<u8")
    breaks = np.flatnonzero(np.diff(at) > _NEAR)
    starts, ends = at[np.concatenate([[0], breaks + 1])], at[np.concatenate([breaks, [len(at) - 1]])] + 1
    return np.stack([starts, ends - starts], axis=1).astype("<u8")


def _read(content: memoryview, size: int, data: NDArray[np.uint8]) -> Beside:
    if size > min(_MOST_HEAD, len(content)):
        raise ValueError("its head is cut")
    head: dict[str, Any] = json.loads(bytes(content[:size]))
    numbers = [head[name] for name in ("size", "places", "undo", "elf")]
    if not all(type(one) is int and 0 <= one <= _LARGEST for one in numbers):
        raise ValueError("a size that is none")
    length, count, undo, elf = numbers
    body = zstd_content(content[size:], count * 16 + undo + elf)
    if len(body) != count * 16 + undo + elf:
        raise ValueError("its parts have other sizes than it says")
    places = np.frombuffer(body[: count * 16], "<u8").reshape(-1, 2)
    original = _undone(data, length, places, body[count * 16 :][:undo])
    if hashlib.sha256(original.data).hexdigest() != head["sha256"]:
        raise ValueError("the file was changed after it was patched")
    return Beside(read_reading(head["reading"]), original, np.frombuffer(body[count * 16 + undo :], np.uint8))


def _undone(data: NDArray[np.uint8], size: int, places: NDArray[np.uint64], was: bytes) -> NDArray[np.uint8]:
    """The original file."""
    original = np.zeros(size, np.uint8)
    both = min(size, len(data))
    original[:both] = data[:both]
    at = 0
    for start, length in places.tolist():
        if start + length > size or at + length > len(was):
            raise ValueError("it changes what is not in the file")
        original[start : start + length] = np.frombuffer(was, np.uint8, length, at)
        at += length
    return original
