"""A decoded function, and the parts of it that the compiler put elsewhere -> how control flows through its
instructions.

It is asked for each inlined copy in a function, of which there may be hundreds, so what all need is made once.
Instructions are positions among those of the function, in address order.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.naming.sites import Decoded
from kinst.targets.columns import is_one_of
from kinst.targets.instruction import Flow, Reason
from kinst.targets.values import dataclass

_FALLS: Final = (Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL)
_CALLS: Final = (Flow.CALL, Flow.INDIRECT_CALL)
_JUMPS: Final = (Flow.JUMP, Flow.BRANCH)
_LARGEST: Final = 1 << 16  # larger functions are not followed
_KEPT: Final = 4  # kept: copies come function by function
_NOWHERE: Final = -1

Positions = NDArray[np.int64]


class ControlFlow:
    """The control flow of one function. A computed jump may go anywhere, so it has no successors."""

    def __init__(self, code: Decoded, rows: Positions, start: int) -> None:
        """`rows` are those of the instructions, ascending; `start` is the address at which the function begins."""
        self.rows = rows
        found = code.instructions
        self._address = found.address[rows]
        flow, end = found.flow[rows], self._address + found.size[rows]
        does_fall, does_jump = is_one_of(flow, _FALLS), is_one_of(flow, _JUMPS)
        self._may_end = (found.reason[rows] == Reason.BREAKPOINT) | is_one_of(flow, _CALLS)
        self._next = np.where(does_fall, self._at(end), _NOWHERE)
        self._goal = np.where(does_jump, self._at(found.target[rows]), _NOWHERE)
        self._ways = does_fall.astype(np.int64) + (does_jump & ~(does_fall & (found.target[rows] == end)))
        self._sources = _by_goal(self._goal)
        self.first = self.position(start)
        self._block, following = self._blocks()
        self._tree = _dominators(following, int(self._block[max(self.first, 0)]))

    def position(self, address: int) -> int:
        """The position of the instruction at an address; -1 if none begins there."""
        return int(self._at(np.array([address], np.uint64))[0])

    def _at(self, address: NDArray[np.uint64]) -> Positions:
        place = np.minimum(np.searchsorted(self._address, address), len(self._address) - 1)
        found: Positions = np.where(self._address[place] == address, place, _NOWHERE)
        return found

    def reached_without(self, positions: Positions, passing: int) -> NDArray[np.bool_]:
        """For each of `positions`, whether it is reached from the function's start without passing through
        `passing`."""
        blocks, own = self._block[positions], int(self._block[passing])
        is_past = np.where(blocks == own, positions >= passing, self._tree.is_below(blocks, own))
        reached: NDArray[np.bool_] = self._tree.is_reached(blocks) & ~is_past
        return reached

    def reached(
        self, starts: Iterable[int], instead: Mapping[int, Sequence[int]], within: Container[int] | None = None
    ) -> tuple[set[int], set[int]]:
        """The instructions that control reaches from `starts`, and where it leaves those `within` (None: everything is
        within).

        Args:
            starts: instructions; -1 is none.
            instead: the successors of some instructions, whatever they are.
            within: what is followed.
        """
        found: set[int] = set()
        left: set[int] = set()
        waiting = list(starts)
        while waiting:
            position = waiting.pop()
            if position < 0 or position in found:
                continue
            if within is not None and position not in within:
                left.add(position)
                continue
            found.add(position)
            waiting += instead.get(position) or (int(self._next[position]), int(self._goal[position]))
        return found, left

    def may_end(self, position: int) -> bool:
        """Whether control may not come back to what follows: after a call, or BUG()."""
        return position >= 0 and bool(self._may_end[position])

    def address(self, position: int) -> int:
        """The address of an instruction."""
        return int(self._address[position])

    def leading_into(self, core: frozenset[int], entry: int) -> set[int]:
        """Instructions outside `core` from which every path leads into it, but not through `entry`: that is a new
        call."""
        missing: dict[int, int] = {}  # paths that are not known yet to lead there
        # Backwards from the core, as a game is solved: an instruction belongs to the set once all of its successors do.
        found: set[int] = set()
        waiting = [position for position in core if position != entry]
        while waiting:
            for source in self._before(waiting.pop()):
                if source in core or source == entry:
                    continue
                missing[source] = missing.get(source, int(self._ways[source])) - 1
                if not missing[source]:
                    found.add(source)
                    waiting.append(source)
        return found

    def _before(self, position: int) -> set[int]:
        """The instructions from which control comes to one."""
        sources = set(self._sources.get(position, ()))
        if position and self._next[position - 1] == position:
            sources.add(position - 1)
        return sources

    def _blocks(self) -> tuple[Positions, list[list[int]]]:
        """The basic block of each instruction, and the successors of each block."""
        size = len(self.rows)
        is_first = np.zeros(size + 1, np.bool_)
        is_first[0] = True
        is_first[self._goal[self._goal >= 0]] = True
        # A block ends at an instruction with a branch, or that does not simply go on to the next.
        is_first[1:] |= (self._goal >= 0) | (self._next != np.arange(1, size + 1))
        firsts = np.flatnonzero(is_first[:size])
        block = np.cumsum(is_first[:size]) - 1
        lasts = np.append(firsts[1:], size) - 1
        ends = np.stack([self._next[lasts], self._goal[lasts]], axis=1)
        following = [[int(block[at]) for at in pair if at >= 0] for pair in ends.tolist()]
        return block, following


def _by_goal(goal: Positions) -> dict[int, list[int]]:
    """The jumps to each instruction that has any."""
    found: dict[int, list[int]] = {}
    jumps = np.flatnonzero(goal >= 0)
    for source, target in zip(jumps.tolist(), goal[jumps].tolist(), strict=True):
        found.setdefault(target, []).append(source)
    return found


@dataclass(frozen=True, slots=True)
class _Tree:
    """The dominator tree of blocks: the blocks below one are reached only through it, and are numbered [number, number
    + size); -1: unreachable."""

    number: Positions
    size: Positions

    def is_reached(self, blocks: Positions) -> NDArray[np.bool_]:
        reached: NDArray[np.bool_] = self.number[blocks] >= 0
        return reached

    def is_below(self, blocks: Positions, top: int) -> NDArray[np.bool_]:
        first, size = int(self.number[top]), int(self.size[top])
        below: NDArray[np.bool_] = (first >= 0) & (self.number[blocks] >= first) & (self.number[blocks] < first + size)
        return below


def _dominators(following: Sequence[Sequence[int]], start: int) -> _Tree:
    """The immediate dominators, by Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm"."""
    order = _reverse_postorder(following, start)
    rank = {block: number for number, block in enumerate(order)}
    before: list[list[int]] = [[] for _ in order]
    for number, block in enumerate(order):
        for target in following[block]:
            before[rank[target]].append(number)
    # The blocks are visited in reverse postorder, so that all but back edges are known when a block is: few rounds
    # suffice.
    above = [0] + [_NOWHERE] * (len(order) - 1)  # by rank: the last block that all paths to it pass
    is_changed = True
    while is_changed:
        is_changed = False
        for number in range(1, len(order)):
            best = _NOWHERE
            for other in before[number]:
                if above[other] != _NOWHERE:
                    best = other if best == _NOWHERE else _common(above, best, other)
            if above[number] != best:
                above[number], is_changed = best, True
    return _numbered(order, above, len(following))


def _common(above: Sequence[int], first: int, second: int) -> int:
    while first != second:
        if first > second:
            first = above[first]
        else:
            second = above[second]
    return first


def _numbered(order: Sequence[int], above: Sequence[int], count: int) -> _Tree:
    size, number = [1] * len(order), [0] * len(order)
    # Children follow their parents in this order: from the last to the first every size is complete when it is
    # added.
    for rank in range(len(order) - 1, 0, -1):
        size[above[rank]] += size[rank]
    free = [1] * len(order)  # the next number below each block
    for rank in range(1, len(order)):
        number[rank] = free[above[rank]]
        free[above[rank]] += size[rank]
        free[rank] = number[rank] + 1
    tree = _Tree(np.full(count, _NOWHERE, np.int64), np.zeros(count, np.int64))
    tree.number[list(order)], tree.size[list(order)] = number, size
    return tree


def _reverse_postorder(following: Sequence[Sequence[int]], start: int) -> list[int]:
    seen, finished = {start}, list[int]()
    # With a stack of its own: a function has thousands of blocks, and Python's stack is short.
    waiting = [(start, iter(following[start]))]
    while waiting:
        block, targets = waiting[-1]
        target = next((one for one in targets if one not in seen), None)
        if target is None:
            finished.append(block)
            waiting.pop()
        else:
            seen.add(target)
            waiting.append((target, iter(following[target])))
    return finished[::-1]


class ControlFlows:
    """The control flows of functions, made on demand. A few are kept."""

    def __init__(self, code: Decoded) -> None:
        """Nothing is followed yet."""
        self.code = code
        self._kept: dict[tuple[int, ...], ControlFlow | None] = {}

    def of(self, functions: Sequence[int]) -> ControlFlow | None:
        """The control flow of a function. The first row is the function, the others are its other parts. None if it is
        too large to be followed."""
        key = tuple(functions)
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = self._made(key)
        return self._kept[key]

    def _made(self, functions: tuple[int, ...]) -> ControlFlow | None:
        first, last = self.code.first[list(functions)], self.code.last[list(functions)]
        if not 0 < int((last - first).sum()) <= _LARGEST:
            return None
        rows = np.sort(np.concatenate([np.arange(*span) for span in zip(first.tolist(), last.tolist(), strict=True)]))
        return ControlFlow(self.code, rows, int(self.code.functions.address[functions[0]]))
