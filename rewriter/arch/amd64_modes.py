"""Code and its functions -> those that run before the processor is in 64-bit mode, and so are not amd64 code.

A kernel's first instructions (multiboot, PVH) are 32-bit code in the same section. Read as 64-bit code they look almost
sane, but sizes differ (a3 takes 4 or 8 bytes of address, 40-4f are instructions of their own), a call pushes 4 bytes,
and jmp *0(%rip) means another address. They are recognised by how they end, since only a far transfer enters 64-bit
mode (SDM volume 3, 9.8.5), and its direct form does not exist there:

    ea | offset:32 | selector:16        ljmp $0x8, $the next instruction, by physical address

What else changes modes is in `amd64_switches`. The mode is followed through jumps and falls into such a function, and
from there through its calls.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_decode import displacements
from kinst.rewriter.arch.amd64_switches import switches
from kinst.rewriter.disassemble import Sweep
from kinst.targets.arch.amd64 import Kind
from kinst.targets.columns import union
from kinst.targets.instruction import Flow, Instructions, Verdict

_FAR_JUMP = 0xEA
_CALL = 0xE8
_SIZE = 7
_PAGE = 4096


def legacy_functions(
    code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64], found: Instructions
) -> NDArray[np.intp]:
    """Rows of `ranges` that hold 16- or 32-bit code, or may.

    Args:
        code: the region's bytes, and some spare ones.
        address: the address of ``code[0]``.
        ranges: (k, 2) offsets of the functions.
        found: their instructions, read as 64-bit code.
    """
    far = _far_jumps(code, address)
    far = _apart(code, address, far, ranges, found) if len(far) and len(ranges) else far
    jumps = union(far, switches(code, address, ranges, found))
    rows = np.searchsorted(ranges[:, 0], jumps, side="right") - 1
    inside = (rows >= 0) & (jumps < ranges[rows, 1]) if len(ranges) else np.zeros(0, np.bool_)
    entering: NDArray[np.intp] = rows[inside]
    if not entering.size:
        return entering
    before = _leading_to(entering, address, ranges, found)
    callers = [*ranges[before].tolist(), *np.stack([ranges[entering, 0], jumps[inside]], axis=1).tolist()]
    return union(union(entering, before), _callees(code, callers, ranges))


def _far_jumps(code: NDArray[np.uint8], address: int) -> NDArray[np.int64]:
    """Offsets of far jumps to the next instruction: with a selector of ring 0 in the GDT, and to the same offset in a
    page."""
    at = np.flatnonzero(code[: len(code) - _SIZE] == _FAR_JUMP).astype(np.int64)
    selector = displacements(code, at + 5, 2)
    at = at[(selector > 0) & (selector < 256) & (selector % 8 == 0)]
    following = displacements(code, at + 1, 4)
    found: NDArray[np.int64] = at[(following - (at + _SIZE) - address % _PAGE) % _PAGE == 0]
    return found


def _apart(
    code: NDArray[np.uint8], address: int, jumps: NDArray[np.int64], ranges: NDArray[np.int64], found: Instructions
) -> NDArray[np.int64]:
    """Those that may be instructions: not those inside of another one, whichever mode their function is read in.

    Bytes of 64-bit code may look so: c1 ea 02 is a shift, and Linux 7.2 has one that seems to be followed by a selector
    and the right offset in a page.
    """
    at = jumps[~np.isin(jumps, (found.address - np.uint64(address)).view(np.int64))]
    rows = np.searchsorted(ranges[:, 0], at, side="right") - 1
    sweeper = Sweep(code, bits=32)
    inner = [
        jump for jump, row in zip(at.tolist(), rows.tolist(), strict=True) if _is_inside(sweeper, jump, ranges[row])
    ]
    return np.setdiff1d(jumps, np.array(inner, np.int64))


def _is_inside(sweeper: Sweep, jump: int, function: NDArray[np.int64]) -> bool:
    """Whether an instruction of a function, read as 32-bit code, spans this offset. Bytes that do not decode are
    skipped."""
    at, end = function.tolist()
    while at < jump < end:
        ends = at + np.cumsum(sweeper.sizes(at, end).astype(np.int64))
        stop = int(ends[-1]) if len(ends) else at
        if stop >= jump:
            return jump not in ends
        at = stop + 1
    return False


def _leading_to(
    entering: NDArray[np.intp], address: int, ranges: NDArray[np.int64], found: Instructions
) -> NDArray[np.intp]:
    """Functions that jump to or fall into those `entering` 64-bit mode, and so on."""
    source, destination = _transfers(address, ranges, found)
    reached = np.zeros(len(ranges), np.bool_)
    reached[entering] = True
    while True:
        new = source[reached[destination] & ~reached[source]]
        if not new.size:
            reached[entering] = False
            return np.flatnonzero(reached)
        reached[new] = True


def _transfers(
    address: int, ranges: NDArray[np.int64], found: Instructions
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """(from, to) of functions that jump or fall into another. Calls are left out: 64-bit code may share a callee."""
    jumps = np.flatnonzero((found.flow == Flow.JUMP) | (found.flow == Flow.BRANCH))
    target = (found.target[jumps] - np.uint64(address)).view(np.int64)
    row = np.searchsorted(ranges[:, 0], target, side="right") - 1
    inside = (row >= 0) & (target < ranges[row, 1])
    jumps, row = jumps[inside], row[inside]
    last = np.append(found.function[1:] != found.function[:-1], True) if len(found) else np.zeros(0, np.bool_)
    falls = last & ((found.kind == Kind.UNDECODABLE) | (found.verdict != Verdict.REFUSE) & (found.flow == Flow.NEXT))
    following = np.minimum(found.function[falls] + 1, len(ranges) - 1)
    adjacent = ranges[found.function[falls], 1] == ranges[following, 0]
    return (
        np.concatenate([found.function[jumps], found.function[falls][adjacent]]),
        np.concatenate([row, following[adjacent]]),
    )


def _callees(code: NDArray[np.uint8], callers: list[list[int]], ranges: NDArray[np.int64]) -> NDArray[np.intp]:
    """Functions that 32-bit code calls (e8, disp32), and those that they call."""
    sweeper = Sweep(code, bits=32)
    starts = {start: row for row, start in enumerate(ranges[:, 0].tolist())}
    chosen: set[int] = set()
    while callers:
        start, end = callers.pop()
        sizes = sweeper.sizes(start, end).astype(np.int64)
        at = start + np.cumsum(sizes) - sizes
        calls = at[code[at] == _CALL]
        targets = (calls + 5 + displacements(code, calls + 1, 4)).tolist()
        new = {starts[target] for target in targets if target in starts} - chosen
        chosen |= new
        callers += ranges[sorted(new)].tolist()
    return np.array(sorted(chosen), np.intp)
