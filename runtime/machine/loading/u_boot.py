"""An arm64 U-Boot's image -> where it looks for its device tree: behind its own bytes.

Its first words are a branch and these (arch/arm/cpu/armv8/start.S), perhaps after a hook of the board's:

    8 bytes    8 bytes     8 bytes       8 bytes
    +----------+-----------+-------------+-----------+
    | linked at| end       | .bss begins | .bss ends |   offsets from where it is linked
    +----------+-----------+-------------+-----------+
"""

import struct
from typing import Final

HEADER: Final = 0x800  # bytes among which they are
_WORDS: Final = struct.Struct("<4Q")
_SMALLEST, _LARGEST = 1 << 16, 1 << 26  # bytes of a U-Boot


def tree_place(content: bytes | memoryview, address: int) -> int | None:
    """The address at which the image that begins with `content`, loaded at `address`, looks for its tree; None if it is
    no such U-Boot."""
    for at in range(0, min(len(content), HEADER) - _WORDS.size + 1, 8):
        linked, end, bss, bss_end = _WORDS.unpack_from(content, at)
        if linked == address and _SMALLEST <= end <= bss <= bss_end <= _LARGEST:
            return int(address + end)
    return None
