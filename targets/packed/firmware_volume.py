"""EFI firmware volumes, as in a flash image of EDK II -> the PE or TE image in them that is asked for.

    volume    40 "_FVH"   32 size   48 size of its header, whose words add up to 0   52 offset of an extended header
    file      GUID   18 type, attributes   20 size, 3 bytes   (attribute 1: 24 size, 8 bytes); each 8-aligned
    section   size, 3 bytes (all ones: 4 size)   3 type; each 4-aligned
        0x01 compressed   0x02 GUID-defined: GUID, offset of the data   0x10 PE   0x12 TE   0x15 name   0x17 a volume

UEFI Platform Initialization Specification 1.8, volume 3.
"""

import struct
import uuid
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.compression import decompressed
from kinst.targets.errors import ImageError
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.reading import Reading
from kinst.targets.values import dataclass
from kinst.targets.visible import visible

_FILE: Final = "EFI firmware"
_MAGIC: Final = b"_FVH"
_LEAST: Final = 56  # bytes of a volume's header
_COMPRESSED, _GUIDED, _PE, _TE, _NAME, _VOLUME = 0x01, 0x02, 0x10, 0x12, 0x15, 0x17
_LZMA: Final = uuid.UUID("ee4e5898-3914-4259-9d6e-dc7bd79403cf")
_PAD: Final = 0xF0  # type of a file that is a gap
_LARGE: Final = 1
_MOST_CONTENT: Final = 256 << 20  # bytes, of all that is decompressed
_MOST_IMAGES: Final = 4096
_DEEPEST: Final = 6


@dataclass(frozen=True, slots=True)
class _Found:
    name: str  # of the file, or else its GUID
    data: bytes


def read_volumes(data: NDArray[np.uint8], _head: bytes, reading: Reading) -> Layer | None:
    """The image that `--payload` names; None: there is no volume in the file.

    Raises:
        ImageError: the user names none, or none that is there; it lists them.
    """
    content = data.tobytes()
    images = [*_Walk().volumes(content, 0)]
    if not images:
        return None
    found = next((one for one in images if one.name == reading.payload), None)
    if found is None:
        which = f"--payload {reading.payload}: " if reading.payload else "name what is meant with --payload: "
        names = ", ".join(one.name for one in images)
        raise ImageError(f"{_FILE}: {which}there are {names}")
    return Layer(f"{_FILE} ({found.name})", np.frombuffer(found.data, np.uint8), _refused, has_payloads=True)


class _Walk:
    """Through volumes in volumes; what is decompressed on the way is bounded."""

    def __init__(self) -> None:
        self._left = _MOST_CONTENT
        self._count = 0

    def volumes(self, content: bytes, depth: int) -> Iterator[_Found]:
        end = 0
        for start, size, header in _starts(content):
            if start >= end:
                end = start + size
                yield from self._files(content[start:end], header, depth)

    def _files(self, volume: bytes, at: int, depth: int) -> Iterator[_Found]:
        while at + 24 <= len(volume):
            at += -at % 8
            head = volume[at : at + 32]
            kind, attributes = head[18:20] if len(head) >= 24 else (_PAD, 0)
            is_large = bool(attributes & _LARGE) and len(head) == 32
            first = 32 if is_large else 24
            size = int.from_bytes(head[24:32] if is_large else head[20:23], "little")
            if size < first or at + size > len(volume) or head[:24].count(0xFF) == 24:  # free space
                return
            if kind != _PAD:
                guid = str(uuid.UUID(bytes_le=head[:16]))
                yield from self._named(volume[at + first : at + size], guid, depth)
            at += size

    def _named(self, content: bytes, guid: str, depth: int) -> Iterator[_Found]:
        """The images of one file, by the name in it."""
        sections = [*_sections(content)]
        names = [body for kind, body, _ in sections if kind == _NAME]
        name = visible(names[0].decode("utf-16-le", "replace").split("\0")[0]) if names else guid
        for kind, body, section in sections:
            if kind in (_PE, _TE):
                yield self._counted(_Found(name, body))
            elif kind == _VOLUME and depth < _DEEPEST:
                yield from self.volumes(body, depth + 1)
            elif kind in (_COMPRESSED, _GUIDED) and depth < _DEEPEST:
                yield from self._named(self._unpacked(kind, section), guid, depth + 1)

    def _counted(self, found: _Found) -> _Found:
        self._count += 1
        if self._count > _MOST_IMAGES:
            raise ImageError(f"{_FILE}: more than {_MOST_IMAGES:,} images")
        return found

    def _unpacked(self, kind: int, section: bytes) -> bytes:
        """What is in a section; nothing if it is compressed in another way than EDK II does it."""
        if kind == _COMPRESSED:
            return section[9:] if section[8:9] == b"\0" else b""
        start = int.from_bytes(section[20:22], "little")
        body = section[start:] if start >= 24 else b""
        if uuid.UUID(bytes_le=section[4:20].ljust(16, b"\0")) != _LZMA:
            return body
        try:
            found = decompressed(body, self._left)
        except ImageError as error:
            raise ImageError(f"{_FILE}: {error}") from None
        self._left -= len(found)
        return found


def _starts(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Offset and size of each volume, and where its files begin in it."""
    at = content.find(_MAGIC)
    while at >= 0:
        start = at - 40
        header = content[start : start + _LEAST] if start >= 0 else b""
        if len(header) == _LEAST:
            size, length = int.from_bytes(header[32:40], "little"), int.from_bytes(header[48:50], "little")
            words = content[start : start + length]
            is_whole = _LEAST <= length <= size and start + size <= len(content) and length % 2 == 0
            if is_whole and sum(struct.unpack(f"<{length // 2}H", words)) & 0xFFFF == 0:
                yield start, size, _first_file(content[start : start + size], header, length)
        at = content.find(_MAGIC, at + 1)


def _first_file(volume: bytes, header: bytes, length: int) -> int:
    extended = int.from_bytes(header[52:54], "little")
    if not extended:
        return length
    return extended + int.from_bytes(volume[extended + 16 : extended + 20], "little")


def _sections(content: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Type, content, and the whole section with its header."""
    at = 0
    while at + 4 <= len(content):
        size, first = int.from_bytes(content[at : at + 3], "little"), 4
        if size == 0xFFFFFF:
            size, first = int.from_bytes(content[at + 4 : at + 8], "little"), 8
        if size < first or at + size > len(content):
            return
        section = content[at : at + size]
        # As if its header were the short one: what is in fixed places then is so in both.
        yield section[3], section[first:], section[first - 4 :]
        at += size + -size % 4


def _refused(_new: NDArray[np.uint8]) -> bytes:
    raise ImageError(
        f"{_FILE}: is read, and not written: its volumes have sums, and often signatures, of all that is in them"
    )
