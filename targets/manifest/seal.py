"""The header of a packed manifest: sizes and digests, by which damage is found before anything else is looked at.

All little-endian:

    0   8  magic "KINSTMAN"
    8   4  format version: 9; 10 has a table more, which those that read 9 must not miss. No others are read
   12   4  CRC-32 of the 12 bytes before it and of everything after it
   16   8  size of the whole manifest
   24   4  size of the JSON head that follows, padded with blanks to a multiple of 8
   28   4  zero
   32  32  SHA-256 of the 12 bytes at 0, the 16 at 16, and everything after this
   64      JSON head, then tables: see `kinst.targets.manifest.packed`

Every version keeps the first 16 bytes, so that another format can be told from a damaged one. Digests show damage,
not malice: an attacker computes them anew, so what they cover is trusted no more than the rest of the file.
"""

import hashlib
import struct
import zlib
from collections.abc import Sequence
from typing import Final

from kinst.targets.errors import ManifestError

MAGIC: Final = b"KINSTMAN"
FORMAT_VERSION: Final = 9  # smaller numbers were used before the first release: none of them can mean another format
MIXED_VERSION: Final = 10
SECTION: Final = ".kinst.manifest"
_FIRST: Final = struct.Struct("<8sI")
_SIZES: Final = struct.Struct("<QII")
_CHECKED: Final = _FIRST.size + 4  # after the CRC
_SIZED: Final = _CHECKED + _SIZES.size
_DIGEST_SIZE: Final = 32


def sealed(head: memoryview, *tables: memoryview, version: int = FORMAT_VERSION) -> list[memoryview]:
    """Header, head and tables: a whole manifest, in parts."""
    size = _SIZED + _DIGEST_SIZE + len(head) + sum(map(len, tables))
    first, sizes = _FIRST.pack(MAGIC, version), _SIZES.pack(size, len(head), 0)
    digest = _digest((first, sizes, head, *tables))
    check = _checksum((first, sizes, digest, head, *tables))
    return [memoryview(first + check + sizes + digest), head, *tables]


def opened(view: memoryview) -> tuple[memoryview, memoryview]:
    """JSON head and tables of a manifest that is as it was written.

    Raises:
        ManifestError: it is damaged, or of another format.
    """
    if len(view) < _SIZED or bytes(view[: len(MAGIC)]) != MAGIC:
        raise ManifestError("manifest: damaged: it does not begin with its magic number")
    _, version = _FIRST.unpack_from(view)
    if _checksum((view[: _FIRST.size], view[_CHECKED:])) != view[_FIRST.size : _CHECKED]:
        raise ManifestError("manifest: damaged: its checksum does not match")
    if version not in (FORMAT_VERSION, MIXED_VERSION):
        raise ManifestError(
            f"manifest: is of format {version}, and this kinst-rewrite reads {FORMAT_VERSION} and {MIXED_VERSION}: "
            "patch the original again, or use the version that patched it"
        )
    size, head_size, zero = _SIZES.unpack_from(view, _CHECKED)
    body = _SIZED + _DIGEST_SIZE
    if size != len(view) or head_size > size - body or zero:
        raise ManifestError("manifest: damaged: its header contradicts its size")
    if _digest((view[: _FIRST.size], view[_CHECKED:_SIZED], view[body:])) != view[_SIZED:body]:
        raise ManifestError("manifest: damaged: its SHA-256 does not match")
    return view[body : body + head_size], view[body + head_size :]


def _checksum(parts: Sequence[bytes | memoryview]) -> bytes:
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return check.to_bytes(4, "little")


def _digest(parts: Sequence[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()
