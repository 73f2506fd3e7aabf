"""How often some places of an image were reached, which jumps there have counted -> its functions and blocks.

Instructions of a block run equally often, but for exceptions: so those without a counter have the count of the ones
before them, and else of those behind, up to an instruction that is there to raise one: a system call, or an access that
the kernel expects to fault. A block begins wherever control might come to; in a function with a computed jump that may
lead anywhere in it, that is each instruction. What then has no count is not known to have run, nor not to have. Of the
block in which a CPU was at the end, what is behind its place may be said to have run.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.landings import landings
from kinst.rewriter.jumps.padding import swept_between
from kinst.rewriter.program import Program, instructions_of
from kinst.runtime.coverage.attributing import Code, bounds, code_blocks, code_starts, digest_of, is_code
from kinst.runtime.coverage.document import CoveredImage, Function, Granularity
from kinst.targets.columns import is_one_of
from kinst.targets.functions.found import Functions
from kinst.targets.instruction import Flow, Instructions, Reason
from kinst.targets.kernels.exception_table import expected_faults

_UNKNOWN: Final = -1
_LEAVING: Final = (Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN, Flow.STOP)
_NEVER: Final = (Reason.DATA, Reason.PADDING)
_RAISE: Final = (
    Reason.UNDECODABLE,
    Reason.BREAKPOINT,
    Reason.PRIVILEGED_FLOW,
    Reason.SYSTEM_CALL,
    Reason.RECORDED,
)
_Counts = NDArray[np.int64]
_Places = NDArray[np.uint64]


def counted_at_sites(program: Program, sites: _Places, counts: _Counts, granularity: Granularity) -> CoveredImage:
    """Attribute counts to functions, which have ranks by their addresses: an order is not known.

    Args:
        program: the image.
        sites: addresses of instructions, sorted: with `Granularity.FUNCTIONS` one in each function that is counted.
        counts: of these.
        granularity: what is listed.
    """
    image, functions = program.original, program.functions
    if granularity is Granularity.FUNCTIONS:
        listed, unknown = _by_function(functions, sites, counts)
    else:
        listed, unknown = _by_instruction(program, sites, counts, granularity)
    head = image.module, str(image.path), image.facts.name, digest_of(image), *bounds(image), image.entry
    return CoveredImage(*head, tuple(listed), (), tuple(unknown))


def _by_function(functions: Functions, sites: _Places, counts: _Counts) -> tuple[list[Function], list[tuple[int, int]]]:
    found = np.full(len(functions), _UNKNOWN, np.int64)
    row = np.searchsorted(functions.address, sites, "right") - 1
    inside = (row >= 0) & (sites < (functions.address + functions.size)[np.maximum(row, 0)])
    found[row[inside]] = counts[inside]
    listed, unknown, rank = list[Function](), list[tuple[int, int]](), 0
    columns = functions.names, functions.address.tolist(), functions.size.tolist(), found.tolist()
    for name, address, size, runs in zip(*columns, strict=True):
        rank += runs > 0
        listed.append(Function(name, address, size, 0, 0, max(runs, 0), rank if runs > 0 else 0, ()))
        if runs == _UNKNOWN:
            unknown.append((address, size))
    return listed, unknown


def _by_instruction(
    program: Program, sites: _Places, counts: _Counts, granularity: Granularity
) -> tuple[list[Function], list[tuple[int, int]]]:
    functions = program.functions
    every = instructions_of(program, np.arange(len(functions)))
    kept = is_code(every) | np.isin(every.address, sites[counts > 0])
    found = every.take(kept)
    index = np.arange(len(found)) - np.searchsorted(found.function, found.function)
    static = code_starts(found, np.zeros(len(found), np.int64), Granularity.BLOCKS)
    others = _behind_exceptions(program, found), _landing_rows(program, every, found, static)
    known = _spread(_at(found.address, sites, counts), reduce(np.union1d, others, static))
    code = Code(found, np.maximum(known, 0), index)
    starts = code_starts(found, code.counts, granularity)
    rows = np.arange(len(functions))
    firsts, ends = (np.searchsorted(found.function, rows, side).tolist() for side in ("left", "right"))
    listed, rank = list[Function](), 0
    columns = functions.names, functions.address.tolist(), functions.size.tolist(), firsts, ends
    for name, address, size, first, end in zip(*columns, strict=True):
        part = code.counts[first:end]
        executed = int((part > 0).sum())
        rank += executed > 0
        if not executed:
            listed.append(Function(name, address, size, 0, 0, 0, 0, ()))
            continue
        runs = int(part[0]) if int(found.address[first]) == address else 0
        blocks = tuple(code_blocks(code, starts, (first, end), address))
        listed.append(Function(name, address, size, end - first, executed, runs, rank, blocks))
    # What nothing is known to lead to, or is of another mode, may run as well.
    doubtful = every.take(~kept & ~is_one_of(every.reason, _NEVER))
    return listed, sorted([*_pieces(found, known), *_pieces(doubtful, np.full(len(doubtful), _UNKNOWN))])


def _behind_exceptions(program: Program, found: Instructions) -> NDArray[np.intp]:
    """The rows behind instructions that may not go on there."""
    raises = is_one_of(found.reason, _RAISE) | np.isin(found.address, expected_faults(program.image).instruction)
    rows = np.flatnonzero(raises) + 1
    return rows[rows < len(found)]


def _landing_rows(
    program: Program, every: Instructions, found: Instructions, starts: NDArray[np.int64]
) -> NDArray[np.intp]:
    """The rows to which control might come from elsewhere. To what nothing leads, as far as is known, the hardware may
    come at any place: a table of vectors has padding between its entries."""
    known = landings(program, every, swept_between(program))
    is_landing = np.isin(found.address, known.addresses)
    anywhere = np.isin(found.function, every.function[known.unknown])
    first = starts[starts > 0]
    lone = first[~is_landing[first] & is_one_of(found.flow[first - 1], _LEAVING)]
    block = np.searchsorted(starts, np.arange(len(found)), "right")
    return np.flatnonzero(is_landing | anywhere | np.isin(block, block[lone]))


def _at(addresses: _Places, sites: _Places, counts: _Counts) -> _Counts:
    """The count of each instruction; -1: it has none."""
    found = np.full(len(addresses), _UNKNOWN, np.int64)
    if len(sites):
        place = np.minimum(np.searchsorted(sites, addresses), len(sites) - 1)
        has = sites[place] == addresses
        found[has] = counts[place[has]]
    return found


def _spread(counts: _Counts, starts: NDArray[np.int64]) -> _Counts:
    """Counts of instructions, with those near them where they have none: of the part that begins at one of `starts`."""
    rows = np.arange(len(counts))
    block = np.searchsorted(starts, rows, "right")
    is_known = counts != _UNKNOWN
    before = np.maximum.accumulate(np.where(is_known, rows, -1))
    behind = np.minimum.accumulate(np.where(is_known, rows, len(rows))[::-1])[::-1]
    found = np.full(len(counts), _UNKNOWN, np.int64)
    for source, is_there in ((behind, behind < len(rows)), (before, before >= 0)):
        near = np.clip(source, 0, max(len(rows) - 1, 0))
        is_same = is_there & (block[near] == block) if len(rows) else is_there
        if source is behind:  # where the machine ended, what is behind did not run, and what is before may have
            is_same &= counts[near] > 0
        found[is_same] = counts[near[is_same]]
    return found


def _pieces(found: Instructions, counts: _Counts) -> Iterator[tuple[int, int]]:
    """Address and size of code that is not known to have run, nor not to have, each of one function."""
    rows = np.flatnonzero(counts == _UNKNOWN)
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (np.diff(rows) > 1) | (np.diff(found.function[rows]) != 0)
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(rows))[: len(firsts)] - 1
    for first, last in zip(rows[firsts].tolist(), rows[lasts].tolist(), strict=True):
        start = int(found.address[first])
        yield start, int(found.address[last]) + int(found.size[last]) - start
