"""Memory of which nothing says what is code -> the ranges that are: those with direct calls of what is in it, too.

A page of code has tens of calls whose targets are in the image (measured: OpenSBI, U-Boot and small kernels of arm64
and riscv64, 11 to 180, and fewer only in few pages in a row); a page of data none to four. Without this, data are
decoded as calls, and what these call would count as functions.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.direct_calls import call_targets

_PAGE: Final = 4096
_BLOCK: Final = 256
_BEHIND: Final = 8  # bytes that a call may reach into what follows
_LEAST: Final = 5  # calls of a page of code
_LEAST_AT_END: Final = 2  # of a block, where the last page of code begins to be data
_GAP: Final = 16  # pages with fewer that are code if there is code on both sides


def code_ranges(data: NDArray[np.uint8], address: int, facts: ArchFacts) -> list[tuple[int, int]]:
    """Offsets at which code begins and ends, ascending; all of it if there are no such calls at all.

    Args:
        data: the memory.
        address: of its first byte.
        facts: the machine.
    """
    pages = np.flatnonzero(_calls(data, address, facts, range(0, len(data), _PAGE)) >= _LEAST)
    if not len(pages):
        return [(0, len(data))]
    breaks = np.flatnonzero(np.diff(pages) > _GAP)
    firsts, lasts = pages[np.concatenate([[0], breaks + 1])], pages[np.concatenate([breaks, [len(pages) - 1]])]
    if firsts[0] <= _GAP:  # images begin with what starts them
        firsts[0] = 0
    starts = (firsts * _PAGE).tolist()
    return [
        (start, _end(data, address, facts, last * _PAGE)) for start, last in zip(starts, lasts.tolist(), strict=True)
    ]


def parts_of(data: NDArray[np.uint8], address: int, facts: ArchFacts) -> Iterator[tuple[int, int, bool]]:
    """Start and end of all that is in it, one after the other, and whether it is code."""
    at = 0
    for start, end in code_ranges(data, address, facts):
        if start > at:
            yield at, start, False
        yield start, end, True
        at = end
    if at < len(data):
        yield at, len(data), False


def _calls(data: NDArray[np.uint8], address: int, facts: ArchFacts, starts: range) -> NDArray[np.int64]:
    """How many calls of what is in the memory begin in each stretch."""
    return np.array([_count(data, address, facts, start, starts.step) for start in starts], np.int64)


def _count(data: NDArray[np.uint8], address: int, facts: ArchFacts, start: int, size: int) -> int:
    targets = call_targets(data[start : start + size + _BEHIND - 1], (address + start) % (1 << 64), facts)
    return int((targets - np.uint64(address) < np.uint64(len(data))).sum())  # below the start it wraps round


def _end(data: NDArray[np.uint8], address: int, facts: ArchFacts, page: int) -> int:
    """Where code ends in its last page: data may follow."""
    blocks = range(page, min(page + _PAGE, len(data)), _BLOCK)
    found = np.flatnonzero(_calls(data, address, facts, blocks) >= _LEAST_AT_END)
    last = int(found[-1]) if len(found) else len(blocks) - 1
    return min(blocks[last] + _BLOCK, len(data))
