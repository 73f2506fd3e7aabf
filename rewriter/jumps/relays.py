"""Sites that are too short for a jump -> short jumps to padding within reach, which has space for a long one."""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.padding import Padding
from kinst.targets.arch.facts import JumpFacts

Addresses = NDArray[np.uint64]


def relays(address: Addresses, padding: Padding, used: Addresses, facts: JumpFacts) -> Addresses:
    """The address of the long jump of each site; 0 where there is no space. Each serves one site.

    Args:
        address: of the sites, ascending.
        padding: where long jumps may be.
        used: ends of instructions whose padding has a jump of `PADDING` already, which takes the first bytes.
        facts: how long jumps are, and how far they reach.
    """
    found = np.zeros(len(address), np.uint64)
    if facts.short is None or not len(address):
        return found
    # Greedy from the lowest address: sites and places ascend, so a place that is too low for one site is too low for
    # all that follow, and no assignment serves more.
    free = _places(padding, used, facts.size)
    _, lowest, highest = facts.short
    first = np.searchsorted(free, address + np.uint64(lowest % (1 << 64))).tolist()
    last = np.searchsorted(free, address + np.uint64(highest), "right").tolist()
    taken, place = np.full(len(address), -1), 0
    for site, (start, end) in enumerate(zip(first, last, strict=True)):
        place = max(place, start)  # the lowest that is left: higher ones serve later sites
        if place < end:
            taken[site], place = place, place + 1
    served = taken >= 0
    found[served] = free[taken[served]]
    return found


def _places(padding: Padding, used: Addresses, size: int) -> Addresses:
    """The addresses at which one jump each fits."""
    start = padding.start + np.where(np.isin(padding.start, used), np.uint64(size), np.uint64(0))
    count = np.maximum((padding.end - start).view(np.int64), 0) // size
    row = np.repeat(np.arange(len(start)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    places: Addresses = start[row] + (within * size).astype(np.uint64)
    return places
