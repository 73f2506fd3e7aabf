"""Instructions and their effects -> what is live before each: what some path reads before it writes it.

Only the code decides. A direct call is a jump that writes the link register, so it is followed into the callee; what
happens after a return, an indirect branch, or any place that was not decoded is unknown: there everything is live. No
calling convention is trusted: hand-written assembly keeps none.

    live before = reads | (live after & ~writes)
    live after = all that is live where control may go

Rows are gathered into basic blocks, which are entered at the first row only; the rows of a block act as one
instruction. Blocks are visited until nothing changes.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.liveness.effects import EVERYTHING, Effects, Masks
from kinst.targets.columns import is_one_of, unique
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.values import dataclass

Rows = NDArray[np.int64]
_LONGEST: Final = 32  # rows of a block
_ROUNDS: Final = 4096  # before giving up: a kernel takes dozens
_NONE: Final = -1


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


def _are_starts(edges: _Edges) -> NDArray[np.bool_]:
    """The first row of each block: branch targets, what follows a branch, and cuts that keep blocks short."""
    size = len(edges.goal)
    is_start = _marks(size, edges.goal[edges.goal >= 0])
    is_start[:1] = True
    is_start[1:] |= ((edges.goal >= 0) | edges.is_lost | (edges.following < 0))[:-1]
    # Short blocks bound the doubling below, and fit its counts into a byte.
    rows = np.arange(size)
    first = np.maximum.accumulate(np.where(is_start, rows, 0))
    is_start |= (rows - first) % _LONGEST == 0
    return is_start


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Basic blocks, and where control goes from them: all that a search needs of the instructions but their effects.

    Of each row: the number of its `block`, and how many rows of that are `left` from this one on. Of each block: its
    first row, in `starts`; (n, 2) `edges`, the blocks that follow, where the number of blocks stands for none; whether
    what follows is unknown, `is_lost`. `sources`: blocks ordered by a block that follows them, those of each from
    `first` on.
    """

    block: Rows
    left: NDArray[np.uint8]
    starts: Rows
    edges: Rows
    is_lost: NDArray[np.bool_]
    sources: Rows
    first: Rows

    @classmethod
    def of(cls, found: Instructions) -> "Blocks":
        """Those of some instructions, ascending by address."""
        edges = _Edges.of(found)
        is_start = _are_starts(edges)
        starts, block = np.flatnonzero(is_start), np.cumsum(is_start) - 1
        end = np.append(starts, len(found))[1:]
        left = (end[block] - np.arange(len(found))).astype(np.uint8)
        rows = np.stack([edges.following[end - 1], edges.goal[end - 1]], axis=1)
        following = np.where(rows < 0, len(starts), block[rows])  # all of them are starts
        order = np.argsort(following.reshape(-1), kind="stable")
        first = np.append(0, np.cumsum(np.bincount(following.reshape(-1), minlength=len(starts))))
        return cls(block, left, starts, following, edges.is_lost[end - 1], order // 2, first)

    def live_before(self, effects: Effects) -> Masks:
        """The registers and flags that are live before each instruction, as bits."""
        reads, writes = self._gathered(effects)
        live_out = self._settled(reads[self.starts], writes[self.starts])
        live: Masks = reads | (live_out[self.block] & ~writes)
        return live

    def _gathered(self, effects: Effects) -> tuple[Masks, Masks]:
        """What the rows from each row to the end of its block read and write together, as if they were one
        instruction."""
        reads, writes, size = effects.reads, effects.writes, len(self.left)
        # By doubling: after each step every row has gathered `step` rows, as in a parallel prefix sum.
        step, longest = 1, int(self.left.max(initial=0))
        while step < longest:
            near, far = slice(0, size - step), slice(step, size)
            inside = np.where(self.left[near] > step, np.uint32(EVERYTHING), np.uint32(0))
            more = reads[far] & ~writes[near] & inside
            writes = np.concatenate([writes[near] | (writes[far] & inside), writes[size - step :]])
            reads = np.concatenate([reads[near] | more, reads[size - step :]])
            step *= 2
        return reads, writes

    def _settled(self, reads: Masks, writes: Masks) -> Masks:
        """What is live after each block, whose rows together read and write so: the least solution, reached from
        below."""
        size = len(reads)
        live_in = np.append(reads, np.uint32(0))
        live_out = np.where(self.is_lost, np.uint32(EVERYTHING), np.uint32(0))
        waiting = np.arange(size)
        for _ in range(_ROUNDS):
            after = live_out[waiting] | live_in[self.edges[waiting, 0]] | live_in[self.edges[waiting, 1]]
            live_out[waiting] = after
            live = reads[waiting] | (after & ~writes[waiting])
            changed = waiting[live != live_in[waiting]]
            live_in[waiting] = live
            if waiting.size == size:
                changed = waiting  # the first time round
            waiting = _unique(_listed(self.sources, self.first, changed), size)
            if not waiting.size:
                return live_out
        # Not settled: claim nothing.
        return np.full(size, EVERYTHING, np.uint32)


def _listed(sources: Rows, first: Rows, blocks: Rows) -> Rows:
    """The predecessors of some blocks."""
    count = first[blocks + 1] - first[blocks]
    start = np.repeat(first[blocks] - (np.cumsum(count) - count), count)
    found: Rows = sources[start + np.arange(len(start))]
    return found


def _unique(blocks: Rows, size: int) -> Rows:
    """Each once. A few are sorted, many are marked."""
    return np.flatnonzero(_marks(size, blocks)) if len(blocks) > size >> 6 else unique(blocks)
