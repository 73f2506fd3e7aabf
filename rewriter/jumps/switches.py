"""Indirect jumps -> those whose destination is unknown, and the entries of the tables of the others."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.references import Jumps, tables
from kinst.rewriter.program import Program
from kinst.targets.columns import holds, is_one_of
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.module_code import code_of

Addresses = NDArray[np.uint64]
_FALLS: Final = (Flow.NEXT, Flow.BRANCH)
_MARGIN: Final = 32  # spare bytes, as `Jumps` has them
_LONGEST: Final = 4096  # entries of a table


def where_jumps_go(
    program: Program, found: Instructions, targets: Addresses
) -> tuple[NDArray[np.intp], list[Addresses]]:
    """The rows of indirect jumps with an unknown destination, and the addresses in the tables of the others.

    `targets`: where control may come to, as far as is known.
    """
    image = program.image
    rows = np.flatnonzero(found.flow == Flow.INDIRECT_JUMP)
    if not image.facts.jump.joins or not len(rows):
        return rows, []
    given = _tables(image, found, rows, targets)
    # A table ends at the next one at the latest: where it really ends is not stored anywhere.
    starts = sorted({at for one in given.values() for at in one or ()})
    entries = {
        start: _entries(image, start, min(end, start + 4 * _LONGEST)) for start, end in pairwise([*starts, 1 << 64])
    }
    known = [row for row, one in given.items() if one is not None and all(len(entries[at]) for at in one)]
    return np.setdiff1d(rows, np.array(known, np.intp)), [*entries.values()]


def _tables(
    image: Image, found: Instructions, rows: NDArray[np.intp], targets: Addresses
) -> dict[int, Sequence[int] | None]:
    """The tables of each jump, as `Tables` finds them."""
    is_next = (found.address[:-1] + found.size[:-1] == found.address[1:]) & ~holds(found.address, targets)[1:]
    leads_on = is_one_of(found.flow, _FALLS) & np.append(is_next, False)
    result = dict[int, Sequence[int] | None]()
    for region in image.code_regions:
        first, end = np.searchsorted(found.address, (region.address, region.address + region.size))
        inside = rows[(rows >= first) & (rows < end)]
        offsets = (found.address[first:end] - np.uint64(region.address)).view(np.int64)
        code = np.append(code_of(image, region), np.zeros(_MARGIN, np.uint8))
        jumps = Jumps(code, region.address, offsets, found.size[first:end], leads_on[first:end], inside - first)
        result |= zip(inside.tolist(), tables(image.facts)(jumps), strict=True)
    return result


def _entries(image: Image, table: int, end: int) -> Addresses:
    """The addresses that a table may hold as distances from itself, up to the next table and as long as they are in
    code."""
    for segment in image.segments:
        at, limit = table - segment.address, min(end - segment.address, segment.file_size)
        if segment.kind == PT_LOAD and 0 <= at < segment.file_size:
            content = image.data[segment.offset + at : segment.offset + limit]
            words = content[: len(content) // 4 * 4].view("<i4").astype(np.int64).view(np.uint64)
            goals: Addresses = np.uint64(table) + words
            outside = np.flatnonzero(~image.is_code(goals))
            return goals[: outside[0]] if len(outside) else goals
    return np.zeros(0, np.uint64)
