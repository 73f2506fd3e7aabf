"""A program -> runs of padding that are never executed or written: jumps may be put there."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import Program
from kinst.targets.columns import is_one_of
from kinst.targets.functions.sweeping import Swept, sweep_spans, without_fill
from kinst.targets.image import CodeRegion
from kinst.targets.instruction import Flow, Instructions, Reason
from kinst.targets.module_code import code_of
from kinst.targets.spans import Spans
from kinst.targets.values import dataclass

Addresses = NDArray[np.uint64]
Mask = NDArray[np.bool_]
_ENDS: Final = (Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN, Flow.STOP)


@dataclass(frozen=True, slots=True)
class Padding:
    """Half-open runs, ascending and disjoint: [start, end)."""

    start: Addresses
    end: Addresses

    def sizes_at(self, address: Addresses) -> NDArray[np.int64]:
        """How many bytes of padding begin at each address."""
        if not len(self.start):
            return np.zeros(len(address), np.int64)
        row = np.minimum(np.searchsorted(self.start, address), len(self.start) - 1)
        return np.where(self.start[row] == address, (self.end[row] - address).view(np.int64), 0)


def between_functions(program: Program) -> Spans:
    """(n, 2) start and end of the code that is in no function."""
    functions, parts = program.functions, [np.zeros((0, 2), np.uint64)]
    for region in program.image.code_regions:
        first, last = np.searchsorted(functions.address, (region.address, region.address + region.size))
        start, size = functions.address[first:last], functions.size[first:last]
        starts = np.append(np.uint64(region.address), start + size)
        ends = np.append(start, np.uint64(region.address + region.size))
        parts.append(np.stack([starts, ends], axis=1)[starts < ends])
    return np.concatenate(parts)


def swept_between(program: Program) -> Swept:
    """The instructions there. Of a kernel that writes to its own code, without long runs of filling bytes."""
    spans = between_functions(program)
    if len(program.patched_at_boot):
        spans = without_fill(program.image, spans)
    return sweep_spans(program.image, spans, program.dissector.dissect)


def padding(program: Program, found: Instructions, between: Swept, landings: Addresses) -> Padding:
    """Runs of padding after instructions that never fall through, and that nothing branches to.

    A kernel that writes to its own code uses nops before its functions (Linux since 6.2: CONFIG_CALL_PADDING): in such
    a kernel only breakpoints count.
    """
    starts, ends = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
    for region in program.image.code_regions:
        free = _breakpoints(program, region, found) if len(program.patched_at_boot) else _filler(region, found, between)
        edges = np.flatnonzero(np.diff(free, prepend=False, append=False))
        starts.append(np.uint64(region.address) + edges[0::2].astype(np.uint64))
        ends.append(np.uint64(region.address) + edges[1::2].astype(np.uint64))
    start, end = np.concatenate(starts), np.concatenate(ends)
    never = is_one_of(found.flow, _ENDS)
    is_entered = np.searchsorted(landings, end) > np.searchsorted(landings, start)
    good = np.isin(start, found.address[never] + found.size[never]) & ~is_entered
    return Padding(start[good], end[good])


def _filler(region: CodeRegion, found: Instructions, between: Swept) -> Mask:
    """Which bytes of a region belong to instructions that do nothing, after the last real one of a function."""
    depth = np.zeros(region.size + 1, np.int64)
    for one, chosen in ((found, found.reason == Reason.PADDING), (between.instructions, between.is_padding)):
        offset = one.address - np.uint64(region.address)
        rows = np.flatnonzero(chosen & (offset < np.uint64(region.size)))
        at = offset[rows].astype(np.int64)
        np.add.at(depth, at, 1)
        np.add.at(depth, at + one.size[rows], -1)
    result: Mask = np.cumsum(depth[:-1]) > 0
    return result


def _breakpoints(program: Program, region: CodeRegion, found: Instructions) -> Mask:
    """Which bytes of a region are one-byte breakpoints: between functions, or as instructions of one."""
    free = np.zeros(region.size, np.bool_)
    one_byte = program.image.facts.breakpoints.get(1)
    if one_byte is None:
        return free
    offset = found.address - np.uint64(region.address)
    free[offset[(offset < np.uint64(region.size)) & (found.size == 1)].astype(np.int64)] = True
    spans = between_functions(program) - np.uint64(region.address)
    for start, end in spans[spans[:, 0] < np.uint64(region.size)].tolist():
        free[start:end] = True
    free &= code_of(program.image, region) == one_byte[0]
    return free
