"""Files -> a FAT16 file system of 8 MiB with all of them in its root (Microsoft, FAT32 File System Specification)."""

import struct
from collections.abc import Mapping
from typing import Final

SECTOR: Final = 512
_SECTORS: Final = 16384  # one a cluster: enough of them for FAT16
_TABLE_SECTORS: Final = _SECTORS * 2 // SECTOR
_ROOT_ENTRIES: Final = 512
_FIRST_CLUSTER, _LAST, _ARCHIVE = 2, 0xFFFF, 0x20


def file_system(files: Mapping[str, bytes]) -> bytes:
    """Names are of the form NAME.TXT: up to eight and three capital letters."""
    table, root, data = [0xFFF8, _LAST], b"", b""
    for name, content in files.items():
        clusters = -(-len(content) // SECTOR)
        first = len(table)
        table += [*range(first + 1, first + clusters), _LAST]
        stem, _, extension = name.partition(".")
        short = f"{stem:8}{extension:3}".encode()
        root += struct.pack("<11sB14xHI", short, _ARCHIVE, first, len(content))
        data += content.ljust(clusters * SECTOR, b"\0")
    chain = struct.pack(f"<{len(table)}H", *table).ljust(_TABLE_SECTORS * SECTOR, b"\0")
    return (_boot_sector() + chain + root.ljust(_ROOT_ENTRIES * 32, b"\0") + data).ljust(_SECTORS * SECTOR, b"\0")


def _boot_sector() -> bytes:
    """One reserved sector, one table, a volume without a label."""
    parameters = struct.pack(
        "<3s8sHBHBHHBHHHII", b"\xeb\x3c\x90", b"KINST   ", SECTOR, 1, 1, 1, _ROOT_ENTRIES, _SECTORS, 0xF8,
        _TABLE_SECTORS, 32, 2, 0, 0,
    )  # fmt: skip
    extended = struct.pack("<BBBI11s8s", 0x80, 0, 0x29, 0x1234_5678, b"NO NAME    ", b"FAT16   ")
    return (parameters + extended).ljust(SECTOR - 2, b"\0") + b"\x55\xaa"
