"""The Image of a kernel that does not say where it is linked, and where its symbols are in it -> its address.

Its data has pointers to its symbols, as they are linked: in place (RELR, or a kernel at a fixed address), or as addends
of relocations. With the right address most pointers into the image point to a symbol; with a wrong one nearly none do.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import unique

ALIGNMENT: Final = 2 << 20  # text_offset counts from such a boundary
_KERNEL_HALF: Final = np.uint64(1 << 63)
_SAMPLED: Final = 100_000  # of a million words that could be pointers, these are examined
_LIKELY: Final = 32  # pieces of the address space, of `ALIGNMENT` each, with the most pointers


def link_address(data: bytes, places: NDArray[np.uint64], memory_size: int, text_offset: int) -> int | None:
    """The address of the first byte; None: nothing points to a symbol.

    Args:
        data: the Image.
        places: of its symbols, from its first byte.
        memory_size: bytes of memory that it takes.
        text_offset: of its start, from a boundary.
    """
    words = np.frombuffer(data, "<u8", len(data) // 8)
    pointers = words[words >= _KERNEL_HALF]
    pointers = unique(pointers[:: 1 + len(pointers) // _SAMPLED])
    is_symbol = np.zeros(memory_size, np.bool_)
    is_symbol[places[places < np.uint64(memory_size)].astype(np.intp)] = True
    best, found = 0, None
    for base in _candidates(pointers, memory_size, text_offset % ALIGNMENT):
        first, last = np.searchsorted(pointers, np.array((base, base + memory_size - 1), np.uint64)).tolist()
        count = int(is_symbol[(pointers[first:last] - np.uint64(base)).astype(np.intp)].sum())
        if count > best:
            best, found = count, base
    return found


def _candidates(pointers: NDArray[np.uint64], memory_size: int, text_offset: int) -> list[int]:
    """Addresses at which the image would hold most of what is pointed to."""
    pieces, counts = np.unique((pointers - np.uint64(text_offset)) // np.uint64(ALIGNMENT), return_counts=True)
    likely = pieces[np.argsort(counts, kind="stable")[::-1][:_LIKELY]].tolist()
    before = memory_size // ALIGNMENT + 1
    found = {piece - back for piece in likely for back in range(before)}
    starts = (piece * ALIGNMENT + text_offset for piece in sorted(found))
    return [start for start in starts if int(_KERNEL_HALF) <= start <= (1 << 64) - memory_size]
