"""A program -> which of the instructions that its kernel rewrites at boot may be displaced: their records then lead to
the copies."""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import Program
from kinst.targets.columns import is_one_of
from kinst.targets.instruction import Flow, Instructions, Verdict
from kinst.targets.kernels.leading_records import SHORTEST, LeadingRecords, leading_records

# What comes back to where it was, or falls through, would do so from its copy once it is rewritten.
_LEAVING = (Flow.RETURN, Flow.JUMP)


def led(program: Program, found: Instructions, *, in_text: bool) -> LeadingRecords:
    """The records of those instructions: deferred returns and jumps that no other table of the kernel has a share
    in. `in_text`: whether the copies are within the kernel's text."""
    known = leading_records(program.image, in_text=in_text)
    if not len(known.site):
        return known
    row = np.minimum(np.searchsorted(found.address, known.site), len(found) - 1)
    movable = (found.address[row] == known.site) & (found.verdict[row] == Verdict.DEFER)
    # A shorter jump would be displaced by a longer one.
    movable &= is_one_of(found.flow[row], _LEAVING) & (found.size[row] >= SHORTEST)
    movable &= _is_listed_once(program.patched_at_boot, known.site, found.size[row].astype(np.uint64))
    return known.without(~movable)


def _is_listed_once(
    ranges: NDArray[np.uint64], address: NDArray[np.uint64], size: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Which instructions are all of one of some ranges, which ascend, and share no byte with another."""
    start, end = ranges[:, 0], ranges[:, 0] + ranges[:, 1]
    first = np.searchsorted(start, address)
    after = np.searchsorted(start, address + size)
    furthest = np.append(np.uint64(0), np.maximum.accumulate(end))
    result: NDArray[np.bool_] = (after == first + 1) & (furthest[first] <= address)
    row = np.minimum(first, len(ranges) - 1)
    result &= (start[row] == address) & (end[row] == address + size)
    return result
