"""Instructions and their effects -> what is live before each: what some path reads before it writes it.

Only the code decides. A direct call is a jump that writes the link register, so it is followed into the callee; what
happens after a return, an indirect branch, or any place that was not decoded is unknown: there everything is live. No
calling convention is trusted: hand-written assembly keeps none.

    live before = reads | (live after & ~writes)
    live after = all that is live where control may go

Rows are gathered into basic blocks, which are entered at the first row only; the rows of a block act as one
instruction. Blocks are visited until nothing changes.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.liveness.effects import EVERYTHING, Effects, Masks
from kinst.targets.columns import is_one_of
from kinst.targets.instruction import Flow, Instructions

Rows = NDArray[np.int64]
_LONGEST: Final = 32  # rows of a block
_ROUNDS: Final = 4096  # before giving up: a kernel takes dozens
_NONE: Final = -1


def live_before(found: Instructions, effects: Effects) -> Masks:
    """The registers and flags that are live before each instruction, as bits. `found` is ascending by address."""
    if not len(found):
        return np.zeros(0, np.uint32)
    edges = _Edges.of(found)
    starts = _starts(edges)
    last = np.append(starts[1:], len(found)) - 1
    reads, writes = _gathered(effects, starts)
    blocks = _Blocks.of(edges, starts, last, reads[starts], writes[starts])
    live_out = blocks.settled()
    block = np.cumsum(_marks(len(found), starts)) - 1
    live: Masks = reads | (live_out[block] & ~writes)
    return live


@dataclass(frozen=True, slots=True)
class _Edges:
    """Where control goes from each row: two rows, -1 for none; `is_lost`: or somewhere unknown."""

    following: Rows
    goal: Rows
    is_lost: NDArray[np.bool_]

    @classmethod
    def of(cls, found: Instructions) -> "_Edges":
        flow, size = found.flow, len(found)
        falls = (flow == Flow.NEXT) | (flow == Flow.BRANCH)
        is_next = np.append(found.address[:-1] + found.size[:-1] == found.address[1:], False)
        following = np.where(falls & is_next, np.arange(1, size + 1), _NONE)
        jumps = np.flatnonzero((flow == Flow.JUMP) | (flow == Flow.BRANCH) | (flow == Flow.CALL))
        goal = np.full(size, _NONE)
        place = np.minimum(np.searchsorted(found.address, found.target[jumps]), size - 1)
        is_there = found.address[place] == found.target[jumps]
        goal[jumps[is_there]] = place[is_there]
        is_lost = falls & ~is_next
        is_lost[jumps[~is_there]] = True
        is_lost |= is_one_of(flow, (Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL, Flow.RETURN, Flow.STOP))
        return cls(following, goal, is_lost)


def _marks(size: int, rows: Rows) -> NDArray[np.bool_]:
    found = np.zeros(size, np.bool_)
    found[rows] = True
    return found


def _starts(edges: _Edges) -> Rows:
    """The first row of each block: branch targets, what follows a branch, and cuts that keep blocks short."""
    size = len(edges.goal)
    is_start = _marks(size, edges.goal[edges.goal >= 0])
    is_start[0] = True
    is_start[1:] |= ((edges.goal >= 0) | edges.is_lost | (edges.following < 0))[:-1]
    # Short blocks bound the doubling below, and fit its counts into a byte.
    rows = np.arange(size)
    first = np.maximum.accumulate(np.where(is_start, rows, 0))
    return np.flatnonzero(is_start | ((rows - first) % _LONGEST == 0))


def _gathered(effects: Effects, starts: Rows) -> tuple[Masks, Masks]:
    """What the rows from each row to the end of its block read and write together, as if they were one instruction."""
    reads, writes = effects.reads.copy(), effects.writes.copy()
    size = len(reads)
    end = np.repeat(np.append(starts[1:], size), np.diff(np.append(starts, size)))
    left = (end - np.arange(size)).astype(np.uint8)  # rows of the block from this one on
    # By doubling: after each step every row has gathered `step` rows, as in a parallel prefix sum.
    step, longest = 1, int(left.max())
    while step < longest:
        near, far = slice(0, size - step), slice(step, size)
        inside = np.where(left[near] > step, np.uint32(EVERYTHING), np.uint32(0))
        more = reads[far] & ~writes[near] & inside
        writes = np.concatenate([writes[near] | (writes[far] & inside), writes[size - step :]])
        reads = np.concatenate([reads[near] | more, reads[size - step :]])
        step *= 2
    return reads, writes


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks as columns. `edges` are (n, 2), the blocks that follow; the number of blocks stands for none."""

    reads: Masks
    writes: Masks
    edges: Rows
    is_lost: NDArray[np.bool_]

    @classmethod
    def of(cls, edges: _Edges, starts: Rows, last: Rows, reads: Masks, writes: Masks) -> "_Blocks":
        pairs = np.stack([edges.following[last], edges.goal[last]], axis=1)
        numbers = np.searchsorted(starts, pairs)
        numbers[pairs < 0] = len(starts)
        return cls(reads, writes, numbers, edges.is_lost[last])

    def settled(self) -> Masks:
        """What is live after each block: the least solution, reached from below."""
        size = len(self.reads)
        sources, first = self._sources()
        live_in = np.append(self.reads, np.uint32(0))
        live_out = np.where(self.is_lost, np.uint32(EVERYTHING), np.uint32(0))
        waiting = np.arange(size)
        for _ in range(_ROUNDS):
            after = live_out[waiting] | live_in[self.edges[waiting, 0]] | live_in[self.edges[waiting, 1]]
            live_out[waiting] = after
            live = self.reads[waiting] | (after & ~self.writes[waiting])
            changed = waiting[live != live_in[waiting]]
            live_in[waiting] = live
            if waiting.size == size:
                changed = waiting  # the first time round
            waiting = _unique(_listed(sources, first, changed), size)
            if not waiting.size:
                return live_out
        # Not settled: claim nothing.
        return np.full(size, EVERYTHING, np.uint32)

    def _sources(self) -> tuple[Rows, Rows]:
        """Blocks ordered by a block that follows them, and where the predecessors of each begin."""
        size = len(self.reads)
        targets = self.edges.reshape(-1)
        order = np.argsort(targets, kind="stable")
        return order // 2, np.searchsorted(targets[order], np.arange(size + 1))


def _listed(sources: Rows, first: Rows, blocks: Rows) -> Rows:
    """The predecessors of some blocks."""
    count = first[blocks + 1] - first[blocks]
    start = np.repeat(first[blocks] - (np.cumsum(count) - count), count)
    found: Rows = sources[start + np.arange(len(start))]
    return found


def _unique(blocks: Rows, size: int) -> Rows:
    """Each once. A few are sorted, many are marked."""
    return np.flatnonzero(_marks(size, blocks)) if len(blocks) > size >> 6 else np.unique(blocks)
