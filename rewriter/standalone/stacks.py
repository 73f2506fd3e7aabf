"""A decoded image -> which of its instructions may run where the stack pointer leads to no stack of theirs.

That is so before code has set one, at the start and on entry from user programs or other exception levels, and where it
has just changed from one to another. So: from the image's entry, from the start of each function that loads the stack
pointer, and from behind that, as far as control goes, calls included, until code itself pushes or makes room on it; and
wherever what is in the stack pointer is dead, for it will be loaded before anything is pushed.
"""

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.liveness.effects import Effects
from kinst.rewriter.liveness.search import live_before
from kinst.rewriter.program import Program
from kinst.rewriter.standalone.trampoline import Maker
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.module_code import code_of

Mask = NDArray[np.bool_]
_MARGIN = 32  # spare bytes, as `Maker.switches_stack` asks for


def without_stack(program: Program, found: Instructions, maker: Maker) -> Mask:
    """Which of all instructions of the program's functions may not push."""
    switches, trusts = _switches_and_trusts(program, found, maker)
    has_switch = np.zeros(len(program.functions), np.bool_)
    has_switch[found.function[switches]] = True
    behind = found.address[switches] + found.size[switches]
    starts = [program.image.entry, *program.functions.address[has_switch].tolist(), *behind.tolist()]
    return _reached(starts, found, trusts) | _is_dead(found, switches, trusts)


def _is_dead(found: Instructions, switches: Mask, trusts: Mask) -> Mask:
    """Before which instructions the stack pointer holds nothing that is needed."""
    result: Mask = live_before(found, Effects(trusts.astype(np.uint32), switches.astype(np.uint32))) & 1 == 0
    return result


def _switches_and_trusts(program: Program, found: Instructions, maker: Maker) -> tuple[Mask, Mask]:
    """Which instructions load the stack pointer, and which rely on it as it is."""
    switches, trusts = np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_)
    for region in program.image.code_regions:
        first, end = np.searchsorted(found.address, (region.address, region.address + region.size))
        rows = slice(int(first), int(end))
        code = np.append(code_of(program.image, region), np.zeros(_MARGIN, np.uint8))
        offsets = (found.address[rows] - np.uint64(region.address)).view(np.int64)
        switches[rows] = maker.switches_stack(code, offsets, found.size[rows])
        trusts[rows] = maker.uses_stack(code, offsets, found.size[rows])
    return switches, trusts & ~switches


def _reached(starts: Iterable[int], found: Instructions, until: Mask) -> Mask:
    """What control comes to from some addresses before one of `until`. A call comes back."""
    reached = np.zeros(len(found), np.bool_)
    waiting = deque(_row(found, start) for start in starts)
    while waiting:
        row = waiting.popleft()
        if row < 0 or reached[row] or until[row]:
            continue
        reached[row] = True
        flow = Flow(int(found.flow[row]))
        if flow in (Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL):
            waiting.append(_row(found, int(found.address[row]) + int(found.size[row])))
        if flow in (Flow.JUMP, Flow.BRANCH, Flow.CALL):
            waiting.append(_row(found, int(found.target[row])))
    return reached


def _row(found: Instructions, address: int) -> int:
    row = int(np.searchsorted(found.address, np.uint64(address)))
    return row if row < len(found) and int(found.address[row]) == address else -1
