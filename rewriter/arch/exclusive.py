"""Instructions -> those between an exclusive load and the store that depends on its reservation, on any path.

A trap in between clears the reservation, so the store would never succeed (Arm ARM B2.9, RISC-V "A" extension). Control
flow, not addresses, decides what is between: a load that no store follows is only an atomic load (Go), and the exit of
a compare-and-swap that found another value comes after the branch. Calls, returns and computed jumps end a region.

    1: ldxr  x0, [x1]       opens
       cmp   x0, x2         inside
       b.ne  2f             inside
       stxr  w4, x3, [x1]   closes
       cbnz  w4, 1b         outside, as everything at 2
"""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import is_one_of, unique
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.values import dataclass

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Exclusives:
    """The kinds of one machine: `opens` make a reservation, `closes` store if it still holds, `cancels` drop it."""

    opens: tuple[int, ...]
    closes: tuple[int, ...]
    cancels: tuple[int, ...] = ()


def exclusive_rows(found: Instructions, kinds: Exclusives) -> NDArray[np.bool_]:
    """Which rows, ascending by address, are on a path from an exclusive load to its store, without the store."""
    inside, leading = np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_)
    opens = is_one_of(found.kind, kinds.opens)
    ends = is_one_of(found.kind, (*kinds.closes, *kinds.cancels))
    front = np.flatnonzero(is_one_of(found.kind, kinds.closes))
    if not front.size or not opens.any():
        return inside
    edges = _Edges.of(found)
    while front.size:  # backwards from the stores
        before = edges.before(front)
        before = unique(before[~leading[before] & ~ends[before]])
        leading[before] = True
        front = before[~opens[before]]
    front = np.flatnonzero(leading & opens)
    while front.size:  # and forwards from the loads, on the same paths
        inside[front] = True
        after = edges.after(front)
        front = unique(after[leading[after] & ~inside[after]])
    return inside


@dataclass(frozen=True, slots=True)
class _Edges:
    """The control flow from row to row, except calls: `jumps` are rows ordered by their `target`."""

    found: Instructions
    falls: NDArray[np.bool_]
    jumps: Rows
    target: NDArray[np.uint64]

    @classmethod
    def of(cls, found: Instructions) -> "_Edges":
        is_next = np.append(found.address[:-1] + found.size[:-1] == found.address[1:], False)
        jumps = np.flatnonzero((found.flow == Flow.JUMP) | (found.flow == Flow.BRANCH))
        jumps = jumps[np.argsort(found.target[jumps], kind="stable")]
        return cls(found, is_next & is_one_of(found.flow, (Flow.NEXT, Flow.BRANCH)), jumps, found.target[jumps])

    def before(self, rows: Rows) -> Rows:
        """The rows from which control comes to some rows."""
        address = self.found.address[rows]
        first = np.searchsorted(self.target, address)
        count = np.searchsorted(self.target, address, "right") - first
        start = np.repeat(first - (np.cumsum(count) - count), count)
        sources: Rows = self.jumps[start + np.arange(len(start))]
        return np.concatenate([sources, (rows - 1)[(rows > 0) & self.falls[rows - 1]]])

    def after(self, rows: Rows) -> Rows:
        """The rows to which control goes from some rows."""
        target = self.found.target[rows[is_one_of(self.found.flow[rows], (Flow.JUMP, Flow.BRANCH))]]
        goal = np.minimum(np.searchsorted(self.found.address, target), len(self.found) - 1)
        return np.concatenate([goal[self.found.address[goal] == target], rows[self.falls[rows]] + 1])
