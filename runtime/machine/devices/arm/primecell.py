"""Arm PrimeCells: part number -> the identification registers by which drivers recognise a device."""


def identification(part: int, revision: int, register: int) -> int:
    """PeriphID0..3 and PCellID0..3 at offsets 0xfe0 to 0xffc, each a byte in a word of its own.

    PeriphID holds the part number (12 bits), the designer 0x41 (8 bits) and the revision; PCellID is 0xb105f00d.
    """
    peripheral = part | 0x41 << 12 | revision << 20
    word = 0xB105F00D if register >= 0xFF0 else peripheral
    return word >> (register >> 2 & 3) * 8 & 0xFF
