"""A disk's size -> the registers of an SD card that has it (SD Physical Layer Simplified Specification 3.01, 5).

Up to 1 GiB it is a card of standard capacity, whose commands count bytes; beyond, of high capacity, in blocks.
"""

from typing import Final

HIGHEST_STANDARD: Final = 1 << 30
_GRAIN, _HIGH_GRAIN = 256 << 10, 512 << 10  # that C_SIZE counts, bytes
_SHIFT: Final = 9  # of a block of 512 bytes
_MULTIPLIER: Final = 7  # C_SIZE_MULT: 512 blocks
# What the card obeys: classes 0 (basic), 2 and 4 (blocks), 8 (application) and 10 (switch).
CLASSES: Final = 0x515
VOLTAGES: Final = 0x00FF_FF00  # 2.7 to 3.6 V, and below, of OCR
HIGH_CAPACITY, POWERED_UP = 1 << 30, 1 << 31  # of OCR
SCR: Final = bytes((0x02, 0x25, 0, 0, 0, 0, 0, 0))  # version 2, erased bits are 0, a bus of one bit or of four
FUNCTIONS: Final = (0x8003, 0x8001, 0x8001, 0x8001, 0x8001, 0x8001)  # of the groups 1 to 6; 1 has high speed
_SAME = _NONE = 0xF  # of a group: leave it as it is; there is no such function
CID: Final = b"\xaaKRKINST\x01\0\0\0\x01\x01\x92"  # by nobody, in February 2025


def is_high_capacity(size: int) -> bool:
    """Whether a card of that many bytes counts in blocks."""
    return size > HIGHEST_STANDARD


def grain(size: int) -> int:
    """What the size of such a card must be a multiple of, in bytes."""
    return _HIGH_GRAIN if is_high_capacity(size) else _GRAIN


def with_checksum(register: bytes) -> bytes:
    """The 16 bytes of CID or CSD, of which these are 15: the last one is a CRC of seven bits (4.5), and a one."""
    crc = 0
    for byte in register:
        for bit in range(7, -1, -1):
            crc = (crc << 1 & 0x7F) ^ (0x09 if (crc >> 6 ^ byte >> bit) & 1 else 0)
    return register + bytes((crc << 1 | 1,))


def csd(size: int, *, is_read_only: bool) -> bytes:
    """Card-specific data (5.3.2, 5.3.3)."""
    protected = 0x10 if is_read_only else 0
    if is_high_capacity(size):
        fields = 1 << 126 | 0x0E << 112 | 0x32 << 96 | CLASSES << 84 | _SHIFT << 80 | 1 << 46 | 0x7F << 39
        fields |= (size // _HIGH_GRAIN - 1) << 48 | 2 << 26 | _SHIFT << 22
    else:
        count = size // _GRAIN - 1
        fields = 0x26 << 112 | 0x32 << 96 | CLASSES << 84 | _SHIFT << 80 | 7 << 77 | count << 62
        fields |= 0xFFF << 50 | _MULTIPLIER << 47 | 1 << 46 | 0x3F << 39 | 0x7F << 32
        fields |= 4 << 26 | _SHIFT << 22 | 1 << 21
    fields |= protected << 8
    return with_checksum(fields.to_bytes(16, "big")[:15])


def switched(argument: int, chosen: tuple[int, ...]) -> tuple[int, ...]:
    """The functions of the groups 1 to 6 after CMD6 asked for some: 15 of a group that has no such function."""
    asked = (argument >> 4 * group & 0xF for group in range(len(FUNCTIONS)))
    rows = zip(asked, FUNCTIONS, chosen, strict=True)
    return tuple(now if one == _SAME else one if mask >> one & 1 else _NONE for one, mask, now in rows)


def switch_status(functions: tuple[int, ...]) -> bytes:
    """What CMD6 sends (4.3.10.4): the current, the functions that there are and those that are chosen, by group 6 to
    1."""
    there = b"".join(mask.to_bytes(2, "big") for mask in reversed(FUNCTIONS))
    packed = sum(one << 4 * group for group, one in enumerate(functions))
    return (b"\0\1" + there + packed.to_bytes(3, "big")).ljust(64, b"\0")
