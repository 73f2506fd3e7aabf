"""An image that no operating system maps -> memory within it that is there only because what follows is aligned.

Kernels and firmware own what is between their first and their last byte, and nothing else is safe: OpenSBI protects
just that range from the next stage, GNU Mach withholds it from its allocator, and boot loaders keep other files out of
it. Between two segments there is nothing if the gap is no longer than a linker leaves for alignment; a longer one may
hold anything, such as a stack. What a kernel frees after start-up, from ``__init_begin`` to ``__init_end``, does not
count.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from kinst.rewriter.planning.slots import CHUNK
from kinst.rewriter.standalone.places.spare import Gap
from kinst.targets.elf.header import PF_X, PT_LOAD, SHF_ALLOC, SHF_WRITE, SHT_NOBITS
from kinst.targets.image import Image, Segment

_GIVEN_BACK: Final = ("__init_begin", "__init_end")
_MOST_UNALIGNED: Final = 2  # pages that a linker leaves at most when it puts data on a page of its own


def gaps(image: Image, code: int) -> tuple[Gap, ...]:
    """Whole pages between segments, the first of which is executable; the largest gap first. `code`: an address of code
    that is mapped in the same way."""
    loads = sorted((one for one in image.segments if one.kind == PT_LOAD and one.size), key=lambda one: one.address)
    own = next((_distance(one) for one in loads if 0 <= code - one.address < one.size), None)
    found = []
    for before, after in pairwise(loads):
        end = before.address + before.size
        first, last = end + -end % CHUNK, after.address - after.address % CHUNK
        # The same distance between link and load address as the code: a jump is relative, and must be right in both
        # maps.
        is_own = _distance(before) == _distance(after) == own and before.flags & PF_X
        if is_own and first < last and _is_for_alignment(end, after) and _is_nobodys(image, end, after.address):
            found.append((first, last))
    return tuple(sorted(found, key=lambda one: one[0] - one[1]))


def slacks(image: Image) -> Iterator[Gap]:
    """Writable memory between what a segment has in the file and its .bss, which is aligned."""
    for one in image.sections:
        if one.kind != SHT_NOBITS or not one.flags & SHF_WRITE:
            continue
        ends = [other.address + other.size for other in image.sections if other.flags & SHF_ALLOC and other is not one]
        end = max((end for end in ends if end <= one.address), default=one.address)
        is_aligned = 0 < one.address - end < one.alignment
        if is_aligned and _is_within(image, end, one.address) and _is_nobodys(image, end, one.address):
            yield end, one.address


def _distance(segment: Segment) -> int:
    return segment.address - segment.load_address


def _is_for_alignment(end: int, after: Segment) -> bool:
    start = after.address
    return start - end < max(start & -start, _MOST_UNALIGNED * after.alignment)


def _is_within(image: Image, first: int, end: int) -> bool:
    return any(one.kind == PT_LOAD and one.address <= first and end <= one.address + one.size for one in image.segments)


def _is_nobodys(image: Image, first: int, end: int) -> bool:
    """Whether no symbol is in it, and no range that a kernel frees."""
    address = image.symbols.address
    inside = (address > np.uint64(first)) & (address < np.uint64(end))
    freed, freed_end = (image.symbols.address_of(name) for name in _GIVEN_BACK)
    is_kept = freed is None or freed_end is None or not freed <= first < freed_end
    return is_kept and not inside.any()
