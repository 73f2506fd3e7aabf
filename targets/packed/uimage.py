"""A legacy image of U-Boot (include/image.h), which mkimage makes -> its payload; and back, with its sums made anew.

0 magic 27 05 19 56   4 CRC-32 of the header, this field 0   8 time   12 size   16 load   20 entry   24 CRC-32 of data
28 os, architecture, type, compression: a byte each   32 name, 32 bytes   64 data          (all big-endian)
Multi-file images: sizes of the parts, then 0, in words; then the parts, each padded to 4 bytes.
"""

import struct
import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.registry import ARCHES
from kinst.targets.errors import ImageError
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.payload import Payload, chosen, layer_of
from kinst.targets.packed.reading import Reading
from kinst.targets.visible import text_of

MAGIC: Final = b"\x27\x05\x19\x56"
_HEADER: Final = struct.Struct(">7I4B32s")
_FILE: Final = "U-Boot image"
_ARCHES: Final = {2: "arm", 3: "x86", 5: "mips", 7: "ppc"} | {
    one.in_files.legacy: one.in_files.u_boot for one in ARCHES
}
_TYPES: Final = {
    1: "standalone", 2: "kernel", 3: "ramdisk", 4: "multi", 5: "firmware", 6: "script", 7: "filesystem", 8: "flat_dt",
    14: "kernel_noload",
}  # fmt: skip
_COMPRESSIONS: Final = {0: "none", 1: "gzip", 2: "bzip2", 3: "lzma", 4: "lzo", 5: "lz4", 6: "zstd"}
_MULTI, _NO_LOAD = 4, 14
_MOST_PARTS: Final = 64


def read_uimage(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    """Read one; None: it is none.

    Raises:
        ImageError: it is damaged, or holds nothing that can be probed.
    """
    if not head.startswith(MAGIC):
        return None
    if len(head) < _HEADER.size:
        raise ImageError(f"truncated: a {_FILE} of {len(data)} bytes")
    fields = _HEADER.unpack_from(head)
    size, kind = fields[3], fields[9]
    if _HEADER.size + size > len(data):
        raise ImageError(f"truncated: this {_FILE} has {size:#x} bytes of data, and the file {len(data):#x} in all")
    content = data[_HEADER.size : _HEADER.size + size]
    payloads = [*_parts(content, fields)] if kind == _MULTI else [_payload("0", content, fields)]
    one = chosen(_FILE, payloads, reading, ["0"])

    def store(new: bytes) -> bytes:
        if kind == _MULTI:
            raise ImageError(f"{_FILE}: one of several files is not written: take it out, and patch that")
        return _header(fields, new) + new + data[_HEADER.size + size :].tobytes()

    return layer_of(_FILE, one, reading, store)


def _payload(name: str, content: NDArray[np.uint8], fields: tuple[int, ...]) -> Payload:
    kind, machine, compression = fields[9], fields[8], fields[10]
    is_placed = kind != _NO_LOAD and name == "0"
    title = text_of(bytes(fields[11]).split(b"\0")[0]) if isinstance(fields[11], bytes) else ""
    what = " ".join(filter(None, (_TYPES.get(kind, f"type {kind}"), repr(title) if title else "")))
    packed = _COMPRESSIONS.get(compression, f"{compression}") if name == "0" else ""
    load, entry = (fields[4], fields[5]) if is_placed else (None, None)
    return Payload(name, what, _ARCHES.get(machine, f"machine {machine}"), packed, load, entry, content)


def _parts(content: NDArray[np.uint8], fields: tuple[int, ...]) -> list[Payload]:
    words = content[: 4 * (_MOST_PARTS + 1)].tobytes()
    sizes = list(struct.unpack(f">{len(words) // 4}I", words[: len(words) // 4 * 4]))
    if 0 not in sizes:
        raise ImageError(f"damaged: the list of files in this {_FILE} does not end")
    sizes = sizes[: sizes.index(0)]
    at, found = 4 * (len(sizes) + 1), []
    for number, size in enumerate(sizes):
        if at + size > len(content):
            raise ImageError(f"truncated: file {number} in this {_FILE} has {size:#x} bytes at {at:#x}")
        found.append(_payload(str(number), content[at : at + size], fields))
        at += size + 3 & ~3
    return found


def _header(fields: tuple[int, ...], data: bytes) -> bytes:
    """The header for other data."""
    new = list(fields)
    new[1], new[3], new[6] = 0, len(data), zlib.crc32(data)
    new[1] = zlib.crc32(_HEADER.pack(*new))
    return _HEADER.pack(*new)
