"""coreboot's file system in a flash image (CBFS) -> the file in it that is asked for: a stage, a payload, or any other.

    each file, at a multiple of 64   "LARCHIVE"   8 size   12 type   16 and 20 offsets of attributes and data   24 name
        0x10 stage: compression, entry (8 bytes), load (8), size, memory   (little-endian, before the data)
        0x11 stage: attribute "StgH": load (8), offset of the entry, memory
        0x20 payload: segments of 28 bytes: what, compression, offset, load (8), size, memory; "ENTR" has the entry

All else is big-endian. coreboot: util/cbfstool/cbfs.h, commonlib/bsd/cbfs_serialized.h.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.registry import arch_by_name
from kinst.targets.compression import compression_of, decompressed
from kinst.targets.errors import ImageError
from kinst.targets.packed.boot_image import LARGEST
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.memory import Span, elf_of_memory
from kinst.targets.packed.reading import Reading
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_FILE: Final = "coreboot image"
_MAGIC: Final = np.frombuffer(b"LARCHIVE", np.uint8)
_ALIGNMENT: Final = 64
_HEADER: Final = struct.Struct(">8s4I")
_OLD_STAGE, _STAGE, _PAYLOAD = 0x10, 0x11, 0x20
_TYPES: Final = {
    0x01: "bootblock", 0x02: "header", _OLD_STAGE: "stage", _STAGE: "stage", _PAYLOAD: "payload", 0x21: "FIT payload",
    0x30: "option ROM", 0x40: "picture", 0x50: "raw", 0x53: "microcode",
}  # fmt: skip
_UNUSED: Final = (0, 0xFFFF_FFFF)
_COMPRESSED, _STAGE_HEADER = 0x42435A4C, 0x53746748  # tags of attributes
_OLD_HEADER: Final = struct.Struct("<IQQII")
_SEGMENT: Final = struct.Struct(">4sIIQII")
_MOST_FILES: Final = 1024


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    kind: int
    data: NDArray[np.uint8]
    attributes: dict[int, bytes]

    def __str__(self) -> str:
        return f"{self.name} ({_TYPES.get(self.kind, f'type {self.kind:#x}')})"


def read_cbfs(data: NDArray[np.uint8], _head: bytes, reading: Reading) -> Layer | None:
    """The file that `--payload` names; None: there are none in it.

    Raises:
        ImageError: the user names none, or none that is there; it lists them; or it is damaged.
    """
    files = [*_files(data)]
    if not files:
        return None
    found = next((one for one in files if one.name == reading.payload), None)
    if found is None:
        which = f"--payload {reading.payload}: " if reading.payload else "name what is meant with --payload: "
        raise ImageError(f"{_FILE}: {which}there are {', '.join(map(str, files))}")
    kind = f"{_FILE} ({found.name})"
    if found.kind not in (_OLD_STAGE, _STAGE, _PAYLOAD):
        return Layer(kind, _plain(found), _refused, has_payloads=True)
    if not reading.machine:
        raise ImageError(f"{kind}: does not say for which machine it is: name that, as with --raw arm64")
    spans, entry = _segments(found) if found.kind == _PAYLOAD else _stage(found)
    start = entry if reading.entry is None else reading.entry
    elf = elf_of_memory(arch_by_name(reading.machine), spans, start)
    return Layer(kind, elf, _refused, has_headers=False, has_payloads=True)


def _files(data: NDArray[np.uint8]) -> Iterator[_File]:
    rows = data[: len(data) // _ALIGNMENT * _ALIGNMENT].reshape(-1, _ALIGNMENT)[:, : len(_MAGIC)]
    found = np.flatnonzero((rows == _MAGIC).all(axis=1))
    if len(found) > _MOST_FILES:
        raise ImageError(f"{_FILE}: more than {_MOST_FILES:,} files")
    for at in (found * _ALIGNMENT).tolist():
        _, size, kind, attributes, offset = _HEADER.unpack(data[at : at + _HEADER.size].tobytes())
        if kind in _UNUSED or offset < _HEADER.size or at + offset + size > len(data):
            continue
        head = data[at : at + offset].tobytes()
        name = text_of(head[_HEADER.size :].split(b"\0")[0])
        yield _File(name, kind, data[at + offset : at + offset + size], dict(_attributes(head, attributes)))


def _attributes(head: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while _HEADER.size <= at and at + 8 <= len(head):
        tag, size = struct.unpack_from(">II", head, at)
        if size < 8 or tag in _UNUSED:
            return
        yield tag, head[at + 8 : at + size]
        at += size


def _plain(file: _File) -> NDArray[np.uint8]:
    """A file as it was put in."""
    packed = file.attributes.get(_COMPRESSED, b"")
    return _unpacked(file.data, int.from_bytes(packed[:4], "big"))


def _unpacked(data: NDArray[np.uint8], compression: int) -> NDArray[np.uint8]:
    if not compression:
        return data
    content = data.tobytes()
    if compression_of(content[:16]) is None:
        raise ImageError(f"{_FILE}: compressed in a way that is not known ({compression}): take it out with cbfstool")
    return np.frombuffer(decompressed(content, LARGEST), np.uint8)


def _stage(file: _File) -> tuple[Sequence[Span], int]:
    if file.kind == _OLD_STAGE:
        head = file.data[: _OLD_HEADER.size].tobytes()
        if len(head) < _OLD_HEADER.size:
            raise ImageError(f"truncated: {file} of this {_FILE}")
        compression, entry, load, size, _ = _OLD_HEADER.unpack(head)
        return [Span(load, _unpacked(file.data[_OLD_HEADER.size :][:size], compression))], entry
    header = file.attributes.get(_STAGE_HEADER, b"")
    if len(header) < 16:
        raise ImageError(f"damaged: {file} of this {_FILE} does not say where it is loaded")
    load, offset, _ = struct.unpack_from(">QII", header)
    return [Span(load, _plain(file))], load + offset


def _segments(file: _File) -> tuple[Sequence[Span], int]:
    """What a payload puts into memory; what is zero there is not in it."""
    content, spans, left = file.data.tobytes(), list[Span](), LARGEST
    for what, compression, offset, load, size, _ in _SEGMENT.iter_unpack(content[: len(content) // 28 * 28]):
        if what == b"ENTR":
            return spans, load
        if what in (b"CODE", b"DATA"):
            if offset + size > len(content):
                raise ImageError(f"truncated: {file} of this {_FILE} has {size:#x} bytes at {offset:#x}")
            spans.append(Span(load, _unpacked(file.data[offset : offset + size], compression)))
            left -= len(spans[-1].data)
            if left < 0:
                raise ImageError(f"{_FILE}: {file} has more than {LARGEST >> 20} MiB")
    raise ImageError(f"damaged: {file} of this {_FILE} does not say where it starts")


def _refused(_new: NDArray[np.uint8]) -> bytes:
    raise ImageError(f"{_FILE}: is read, and not written: take the file out (cbfstool extract), and patch that")
