"""The sorted table of call frame information that a file has, where PT_GNU_EH_FRAME says (LSB Core 10.6.2).

version, 1 | encodings of the pointer, of the count and of the entries | pointer | count | entries: address, record
"""

import struct
from typing import Final

import numpy as np

from kinst.rewriter.frames.encoding import HEAD_SIZE, TABLE_HEAD, OldTable
from kinst.targets.elf.header import PT_GNU_EH_FRAME
from kinst.targets.image import Image

_ENTRY: Final = 8


def old_table(image: Image) -> tuple[OldTable | None, bool]:
    """The table, if there is one; and whether it can be replaced: not if it has a form that no linker gives it."""
    found = [one for one in image.segments if one.kind == PT_GNU_EH_FRAME]
    if not found:
        return None, True
    one = found[0]
    data = image.data[one.offset : one.offset + one.file_size].tobytes()
    if len(found) > 1 or len(data) < HEAD_SIZE or not data.startswith(TABLE_HEAD):
        return None, False
    pointer, count = struct.unpack_from("<iI", data, len(TABLE_HEAD))
    if len(data) < HEAD_SIZE + _ENTRY * count:
        return None, False
    pairs = np.frombuffer(data, "<i4", 2 * count, HEAD_SIZE).reshape(-1, 2).astype(np.int64)
    address, record = (pairs.view(np.uint64) + np.uint64(one.address)).T.copy()
    if (address[1:] < address[:-1]).any():
        return None, False
    return OldTable(address, record, one.address + len(TABLE_HEAD) + pointer), True
