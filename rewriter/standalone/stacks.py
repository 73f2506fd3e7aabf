"""A decoded image -> which of its instructions may run where the stack pointer leads to no stack of theirs.

That is so before code has set one, at the start and on entry from user programs or other exception levels, and while it
changes from one to another. So: in each function that loads the stack pointer, and from the image's entry and from the
start of each such function as far as control goes, calls included, until something loads it.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import Program
from kinst.rewriter.standalone.trampoline import Maker
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.module_code import code_of

Mask = NDArray[np.bool_]
_MARGIN = 32  # spare bytes, as `Maker.switches_stack` asks for


def without_stack(program: Program, found: Instructions, maker: Maker) -> Mask:
    """Which of all instructions of the program's functions may not push."""
    switches = _switches(program, found, maker)
    has_switch = np.zeros(len(program.functions), np.bool_)
    has_switch[found.function[switches]] = True
    starts = program.functions.address[has_switch].tolist()
    early = _reached([program.image.entry, *starts], found, switches)
    return early | has_switch[found.function]


def _switches(program: Program, found: Instructions, maker: Maker) -> Mask:
    result = np.zeros(len(found), np.bool_)
    for region in program.image.code_regions:
        first, end = np.searchsorted(found.address, (region.address, region.address + region.size))
        code = np.append(code_of(program.image, region), np.zeros(_MARGIN, np.uint8))
        offsets = (found.address[first:end] - np.uint64(region.address)).view(np.int64)
        result[first:end] = maker.switches_stack(code, offsets, found.size[first:end])
    return result


def _reached(starts: list[int], found: Instructions, switches: Mask) -> Mask:
    """What control comes to from some addresses before it comes to one of `switches`. A call comes back."""
    reached = np.zeros(len(found), np.bool_)
    waiting = deque(_row(found, start) for start in starts)
    while waiting:
        row = waiting.popleft()
        if row < 0 or reached[row]:
            continue
        reached[row] = True
        if switches[row]:
            continue
        flow = Flow(int(found.flow[row]))
        if flow in (Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL):
            waiting.append(_row(found, int(found.address[row]) + int(found.size[row])))
        if flow in (Flow.JUMP, Flow.BRANCH, Flow.CALL):
            waiting.append(_row(found, int(found.target[row])))
    return reached


def _row(found: Instructions, address: int) -> int:
    row = int(np.searchsorted(found.address, np.uint64(address)))
    return row if row < len(found) and int(found.address[row]) == address else -1
