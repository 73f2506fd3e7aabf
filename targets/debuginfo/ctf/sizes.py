"""Sizes of structs, where GNU ld made them too long.

When ld merges dictionaries (libctf of binutils 2.40) it gives a struct at least the size at which its last member ends,
and takes a bit-field for a word of its own that begins at the byte where its first bit is: `struct { char a; int b :
17; }` gets 5 bytes in place of 4. What contains such a struct is longer as well.
"""

from collections.abc import Sequence

from kinst.targets.c_types import Member, alignment_of, size_of


def size_of_struct(size: int, ends: Sequence[int], members: tuple[Member, ...]) -> int:
    """The size of a struct or union in bytes.

    Args:
        size: what is recorded.
        ends: where its members end for ld, in bytes.
        members: its members.
    """
    end = max((_end(member) for member in members), default=0)
    if size != max(ends, default=0) or size <= end:
        return size  # the compiler's own: larger for alignment, or exact
    alignment = max(alignment_of(member.type) for member in members)
    if any(member.offset % alignment_of(member.type) for member in members if member.bit_size is None):
        return end  # packed
    return min(size, -(-end // alignment) * alignment)


def _end(member: Member) -> int:
    """The byte behind a member."""
    if member.bit_size is not None:
        return member.offset + (member.bit_offset + member.bit_size + 7) // 8
    return member.offset + (size_of(member.type) or 0)


def size_of_bits(bits: int) -> int:
    """What ld takes for the size of a bit-field: the least power of two bytes that hold as many bits."""
    size = 1
    while 8 * size < bits:
        size *= 2
    return size
