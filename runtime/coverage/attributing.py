"""How often each address of an image was reached -> its functions, blocks and instructions with their counts.

Blocks are those of the image, whatever ended them when they ran: a block begins where a function does, at the target of
a jump in the same function, and behind each instruction that does not simply go on; and where the count changes, which
is where a computed jump leads, or an exception leaves.
"""

from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import Program, instructions_of
from kinst.runtime.coverage.document import Block, CoveredImage, Function, Granularity
from kinst.runtime.coverage.executed import Executed
from kinst.targets.columns import is_one_of
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.functions.found import Functions
from kinst.targets.image import Image
from kinst.targets.instruction import NO_CODE, Flow, Instructions, Reason
from kinst.targets.values import dataclass

_NO_CODE: Final = (*NO_CODE, Reason.UNREACHED, Reason.UNVOUCHED, Reason.PADDING)


@dataclass(frozen=True, slots=True)
class ImageRun:
    """What ran of an image: counts, and the link addresses of its blocks in the order in which they first did."""

    counts: Executed
    order: NDArray[np.uint64]


def attributed(program: Program, run: ImageRun, granularity: Granularity) -> CoveredImage:
    """Attribute what ran to the functions of the image."""
    image, functions = program.original, program.functions
    ranks = _ranks(functions, run.order)
    code = _code(instructions_of(program, np.flatnonzero(ranks)), run.counts)
    ran = dict(_ran(functions, ranks, code, granularity))
    columns = functions.names, functions.address.tolist(), functions.size.tolist()
    listed = tuple(
        ran.get(row) or Function(name, address, size, 0, 0, 0, 0, ())
        for row, (name, address, size) in enumerate(zip(*columns, strict=True))
    )
    outside = tuple(_elsewhere(functions, run.counts))
    head = image.module, str(image.path), image.facts.name, digest_of(image), *bounds(image), image.entry
    return CoveredImage(*head, listed, outside)


@dataclass(frozen=True, slots=True)
class Code:
    """Instructions of functions that ran, with what is no code left out, their counts, and which of its function's
    instructions each is: among all, since what is code depends on whether it ran."""

    found: Instructions
    counts: NDArray[np.int64]
    index: NDArray[np.int64]


def _code(found: Instructions, counts: Executed) -> Code:
    runs = counts.at(found.address)
    kept = (runs > 0) | is_code(found)
    index = np.arange(len(found)) - np.searchsorted(found.function, found.function)
    return Code(found.take(kept), runs[kept], index[kept])


def is_code(found: Instructions) -> NDArray[np.bool_]:
    """Which of them are code as far as is known without seeing it run."""
    return ~is_one_of(found.reason, _NO_CODE)


def _ranks(functions: Functions, order: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each function its place among those that ran, in the order in which they began to; from 1; 0: it did not."""
    row = np.searchsorted(functions.address, order, "right") - 1
    inside = row >= 0
    inside[inside] = order[inside] - functions.address[row[inside]] < functions.size[row[inside]]
    rows, first = np.unique(row[inside], return_index=True)
    ranks = np.zeros(len(functions), np.int64)
    ranks[rows[np.argsort(first)]] = np.arange(1, len(rows) + 1)
    return ranks


def _ran(
    functions: Functions, ranks: NDArray[np.int64], code: Code, granularity: Granularity
) -> Iterator[tuple[int, Function]]:
    """The functions that ran, by their rows."""
    found, counts = code.found, code.counts
    blocks = code_starts(found, counts, granularity)
    rows = np.flatnonzero(ranks)
    firsts = np.searchsorted(found.function, rows).tolist()
    ends = np.searchsorted(found.function, rows, "right").tolist()
    addresses, sizes = functions.address[rows].tolist(), functions.size[rows].tolist()
    for row, address, size, first, end in zip(rows.tolist(), addresses, sizes, firsts, ends, strict=True):
        part = counts[first:end]
        runs = int(part[0]) if end > first and int(found.address[first]) == address else 0
        head = functions.names[row], address, size, end - first, int((part > 0).sum())
        listed = () if granularity is Granularity.FUNCTIONS else tuple(code_blocks(code, blocks, (first, end), address))
        yield row, Function(*head, runs, int(ranks[row]), listed)


def code_starts(found: Instructions, counts: NDArray[np.int64], granularity: Granularity) -> NDArray[np.int64]:
    """The rows with which what is listed begins."""
    if granularity is Granularity.INSTRUCTIONS:
        return np.arange(len(found))
    is_first = np.ones(len(found), np.bool_)
    end = found.address + found.size
    goes_on = (found.flow[:-1] == Flow.NEXT) & (end[:-1] == found.address[1:]) & (counts[:-1] == counts[1:])
    is_first[1:] = ~goes_on | (found.function[1:] != found.function[:-1])
    is_first[_goals(found)] = True
    return np.flatnonzero(is_first)


def _goals(found: Instructions) -> NDArray[np.intp]:
    """The rows to which a jump of the same function leads."""
    jumps = np.flatnonzero(is_one_of(found.flow, (Flow.JUMP, Flow.BRANCH)))
    place = np.minimum(np.searchsorted(found.address, found.target[jumps]), max(len(found) - 1, 0))
    is_own = (found.address[place] == found.target[jumps]) & (found.function[place] == found.function[jumps])
    goals: NDArray[np.intp] = place[is_own]
    return goals


def code_blocks(code: Code, starts: NDArray[np.int64], rows: tuple[int, int], address: int) -> Iterator[Block]:
    """The blocks of one function, whose instructions are the first of `rows` to before the second."""
    found, counts = code.found, code.counts
    low, high = np.searchsorted(starts, rows).tolist()
    bounds = [*starts[low:high].tolist(), rows[1]]
    for start, following in pairwise(bounds):
        at, last = int(found.address[start]), following - 1
        size = int(found.address[last]) + int(found.size[last]) - at
        yield Block(at - address, size, int(code.index[start]), following - start, int(counts[start]))


def _elsewhere(functions: Functions, counts: Executed) -> Iterator[tuple[int, int, int]]:
    """Address, size and count of what ran in no function."""
    for start, end, runs in counts.pieces():
        while start < end:
            row = int(np.searchsorted(functions.address, np.uint64(start), "right")) - 1
            stop = int(functions.address[row] + functions.size[row]) if row >= 0 else 0
            if start < stop:
                start = stop
                continue
            following = int(functions.address[row + 1]) if row + 1 < len(functions) else end
            yield start, min(end, following) - start, runs
            start = following


def bounds(image: Image) -> tuple[int, int]:
    """The addresses that its loaded part begins and ends with. If the code is further than 4 GiB behind that, as that
    of Linux on amd64 is behind its data of each CPU, that of the code: offsets in drcov have 32 bits."""
    loads = [(one.address, one.address + one.size) for one in image.segments if one.kind == PT_LOAD and one.size]
    code = [(one.address, one.address + one.size) for one in image.code_regions]
    last = max((end for _, end in code), default=0)
    near = [one for one in loads if last - one[0] < 1 << 32] or code or loads or [(0, 0)]
    return min(start for start, _ in near), max(end for _, end in near)


def digest_of(image: Image) -> str:
    """A digest of its code."""
    found = sha256()
    for region in image.code_regions:
        found.update(f"{region.address:x}+{region.size:x} ".encode())
        found.update(image.data[region.offset : region.offset + region.size].tobytes())
    return found.hexdigest()
