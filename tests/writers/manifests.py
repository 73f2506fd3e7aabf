"""Manifests as older versions of the tool wrote them, and patched files with other manifests."""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kinst.targets.elf.header import SECTION_HEADER
from kinst.targets.image import open_image
from kinst.targets.manifest import SECTION, Manifest, pack_manifest
from kinst.targets.manifest_seal import opened
from kinst.targets.manifest_tables import packed_table

_TABLES = ("sites", "probes", "enablings", "functions", "names", "numbers", "symbols", "strings")


def older_format(manifest: Manifest, version: int, more: Mapping[str, str] | None = None) -> bytes:
    """A manifest in a format from 1 to 8, which must be able to say all of it: before 8, tables are as they are in
    memory, each padded to a multiple of 8. Jumps are in the head, and `more`."""
    head, at = json.loads(bytes(opened(memoryview(pack_manifest(manifest)))[1])), 0
    for address, size in manifest.jumps.tolist():
        texts = [content[at : at + size].hex() for content in (manifest.jump_originals, manifest.jump_code)]
        head.setdefault("jumps", []).append([address, *texts, ""])
        at += size
    head |= more or {}
    text = json.dumps(head, separators=(",", ":"), sort_keys=True).encode()
    body = packed = text + b" " * (-len(text) % 8)
    for name in _TABLES if version >= 3 else _TABLES[:5]:
        table = getattr(manifest, name)
        data = table if isinstance(table, bytes) else table.tobytes()
        if version == 8:
            body += packed_table(np.frombuffer(table, np.uint8) if isinstance(table, bytes) else table)
        else:
            body += data + bytes(-len(data) % 8)
    first = b"KINSTMAN" + struct.pack("<I", version)
    digest_size = 32 if version >= 4 else 0
    sizes = struct.pack("<QII", 32 + digest_size + len(body), len(packed), 0)
    digest = hashlib.sha256(first + sizes + body).digest()[:digest_size]
    check = struct.pack("<I", zlib.crc32(first + sizes + digest + body))
    return first + check + sizes + digest + body


def with_manifest(patched: Path, content: bytes) -> bytes:
    """A patched file with another manifest, which lies where it lay if there is room, or else at the end."""
    image, data = open_image(patched), bytearray(patched.read_bytes())
    section = image.section(SECTION)
    assert section is not None
    offset = section.offset
    if len(content) > section.size:
        offset = len(data)
        data += content
    data[offset : offset + len(content)] = content
    row = np.frombuffer(data, SECTION_HEADER, 1, image.header.shoff + section.index * SECTION_HEADER.itemsize)
    row["offset"], row["size"] = offset, len(content)
    return bytes(data)
