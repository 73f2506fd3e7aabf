"""A decoded image -> which of its instructions may run while the stack pointer does not point to a stack of theirs.

That is so before start-up code has set one, on entry from user programs or from another exception level, and between a
load of the stack pointer and the first use of the new stack. A register saved there would overwrite whatever the
pointer happens to lead to. So it is assumed, as far as control flows and into calls, until an instruction itself pushes
or allocates: from the image's entry point; from the start of functions from which control comes to a load of the stack
pointer, or that never return; from other code that comes to one, if nothing is known to lead there; and after such a
load. A computed jump may lead to what follows it in its function: so code goes on at its link address when it has
turned the MMU on. It is also assumed wherever the value of the stack pointer is dead, since it is loaded before
anything is pushed.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.liveness.effects import Effects
from kinst.rewriter.program import Program, code_in_batches
from kinst.rewriter.standalone.code.trampoline import CodeGenerator
from kinst.targets.columns import is_one_of
from kinst.targets.instruction import Flow, Instructions

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]
_FALLS = (Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL)
_GOES = (Flow.JUMP, Flow.BRANCH, Flow.CALL)


def without_stack(flow: Dataflow, generator: CodeGenerator) -> Mask:
    """Which of all instructions of the program's functions may not push."""
    program, found = flow.program, flow.found
    switches, trusts = _switches_and_trusts(flow, generator)
    edges = _Edges(found)
    # Backwards from the loads: everything from which control gets there with the old stack pointer unused.
    leads = _reached(np.flatnonzero(switches).tolist(), trusts, edges.predecessors)
    starts = edges.rows_at(program.functions.address)
    starts = starts[starts >= 0]
    bare = starts[leads[starts] | _never_returns(program, found, trusts)[found.function[starts]]]
    orphans = [row for row in np.flatnonzero(leads).tolist() if not edges.predecessors(row)]
    after = edges.rows_at(found.address[switches] + found.size[switches])
    entry = edges.rows_at(np.array([program.image.entry], np.uint64))
    # And forwards from where there may be no stack.
    early = _reached([*np.concatenate([entry, bare, after]).tolist(), *orphans], trusts, edges.successors)
    return early | _is_dead(flow, switches, trusts)


def _is_dead(flow: Dataflow, switches: Mask, trusts: Mask) -> Mask:
    """Before which instructions the value of the stack pointer is dead."""
    # The search for dead registers, with one register in place of all: bit 0 is the stack pointer.
    effects = Effects(trusts.astype(np.uint32), switches.astype(np.uint32))
    result: Mask = flow.blocks.live_before(effects) & 1 == 0
    return result


def _switches_and_trusts(flow: Dataflow, generator: CodeGenerator) -> tuple[Mask, Mask]:
    """Which instructions load the stack pointer, and which rely on its value."""
    found, effects = flow.found, flow.effects
    switches, trusts = np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_)
    for rows, code, offsets in code_in_batches(flow.program, found):
        part = Effects(effects.reads[rows], effects.writes[rows])
        switches[rows], trusts[rows] = generator.stack_roles(code, offsets, found.size[rows], part)
    return switches, trusts & ~switches


def _never_returns(program: Program, found: Instructions, trusts: Mask) -> Mask:
    """Which functions have no return, no direct jump and no use of the stack, but a computed jump or an end such as a
    return from an exception: vectors and the like."""
    stays, leaves = np.zeros(len(program.functions), np.bool_), np.zeros(len(program.functions), np.bool_)
    stays[found.function[trusts | is_one_of(found.flow, (Flow.RETURN, Flow.JUMP))]] = True
    leaves[found.function[is_one_of(found.flow, (Flow.INDIRECT_JUMP, Flow.STOP))]] = True
    return leaves & ~stays


class _Edges:
    """Where control comes from and goes to, row by row: few are asked for."""

    def __init__(self, found: Instructions) -> None:
        self._found = found
        goes = np.flatnonzero(is_one_of(found.flow, _GOES))
        order = np.argsort(found.target[goes], kind="stable")
        self._sources = goes[order]
        self._targets = found.target[self._sources]

    def rows_at(self, addresses: NDArray[np.uint64]) -> Rows:
        """The rows of the instructions at some addresses; -1 where none begins."""
        place = np.minimum(np.searchsorted(self._found.address, addresses), len(self._found) - 1)
        found: Rows = np.where(self._found.address[place] == addresses, place, -1)
        return found

    def successors(self, row: int) -> Sequence[int]:
        """The rows that control may go to next. A call comes back, and a computed jump stays in its function."""
        found, flow = self._found, int(self._found.flow[row])
        end = found.address[row] + found.size[row]
        goals = [end] * (flow in _FALLS) + [found.target[row]] * (flow in _GOES)
        rows: list[int] = self.rows_at(np.array(goals, np.uint64)).tolist()
        stays = flow == Flow.INDIRECT_JUMP and row + 1 < len(found) and found.function[row + 1] == found.function[row]
        return [*rows, row + 1] if stays else rows

    def predecessors(self, row: int) -> Sequence[int]:
        """The rows that control may have come from."""
        found, address = self._found, self._found.address[row]
        first, last = np.searchsorted(self._targets, address), np.searchsorted(self._targets, address, "right")
        rows: list[int] = self._sources[first:last].tolist()
        is_next = row and found.address[row - 1] + found.size[row - 1] == address and found.flow[row - 1] in _FALLS
        return [*rows, row - 1] if is_next else rows


def _reached(starts: Iterable[int], until: Mask, edges: Callable[[int], Sequence[int]]) -> Mask:
    """The rows that control reaches from some rows before it reaches one of `until`. -1 is no row."""
    reached = np.zeros(len(until), np.bool_)
    waiting = deque(starts)
    while waiting:
        row = waiting.popleft()
        if row >= 0 and not reached[row] and not until[row]:
            reached[row] = True
            waiting.extend(edges(row))
    return reached
