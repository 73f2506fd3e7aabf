"""A region of code and its functions -> classified instructions, block by block; then the effects between rows.

A region is swept in blocks of whole functions, small enough for the arrays of one block to stay in the CPU's cache: a
kernel of 3 million instructions is classified several times faster than in one go.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.exclusive import Exclusives, exclusive_rows
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict
from kinst.targets.values import dataclass

_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Block:
    """Some functions decoded; the rows `loads` read ``loaded`` bytes at their target."""

    instructions: Instructions
    loads: NDArray[np.intp]
    loaded: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the sweep must know of a machine's kinds."""

    unit: int  # bytes of the smallest instruction
    data: int  # the kind of what is loaded as data
    exclusives: Exclusives


# One block: rows of the ranges given are numbered from 0.
Decode = Callable[[NDArray[np.uint8], int, NDArray[np.int64]], Block]


def sweep(
    decode: Decode, rules: Rules, code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64]
) -> Instructions:
    """Every instruction of `ranges`, with data and exclusive regions refused; arguments as `Dissector.dissect`."""
    slices = list(_slices(ranges))
    decoded = [decode(code, address, ranges[rows]) for rows in slices]
    marks = np.zeros(len(code) // rules.unit + 2, np.bool_)
    for block in decoded:
        _mark(marks, block, address, len(code), rules.unit)
    found = _join([block.instructions for block in decoded], [rows.start for rows in slices])
    del decoded
    if marks.any():
        _assign_data(found, marks, address, rules)
    return found.refuse(exclusive_rows(found, rules.exclusives), Reason.EXCLUSIVE)


def _slices(ranges: NDArray[np.int64]) -> Iterator[slice]:
    """Rows of `ranges` that make up one block each; at least one slice."""
    ends = np.cumsum(ranges[:, 1] - ranges[:, 0])
    first = 0
    while first < len(ranges):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _BLOCK_BYTES, side="right")))
        yield slice(first, last)
        first = last
    if not len(ranges):
        yield slice(0, 0)


def _join(parts: list[Instructions], first_functions: list[int]) -> Instructions:
    """Blocks as one, `function` counted from the first range of all."""
    moved = [
        replace(part, function=part.function + np.int32(first))
        for part, first in zip(parts, first_functions, strict=True)
    ]
    columns = (np.concatenate([getattr(part, field.name) for part in moved]) for field in fields(Instructions))
    return Instructions(*columns)


def _mark(marks: NDArray[np.bool_], block: Block, address: int, size: int, unit: int) -> None:
    """Mark the units of code that loads of the block read: `size` bytes at `address`."""
    offset = (block.instructions.target[block.loads] - np.uint64(address - address % unit)).view(np.int64)
    for step in range(int(block.loaded.max(initial=0))):
        at = offset + step
        marks[at[(step < block.loaded) & (at >= 0) & (at < size)] // unit] = True


def _assign_data(found: Instructions, marks: NDArray[np.bool_], address: int, rules: Rules) -> None:
    first = (found.address - np.uint64(address - address % rules.unit)).view(np.int64) // rules.unit
    data = marks[first] | ((found.size > rules.unit) & marks[first + 1])
    found.kind[data], found.flow[data], found.target[data] = rules.data, Flow.STOP, 0
    found.verdict[data], found.reason[data] = Verdict.REFUSE, Reason.DATA


def units(address: int, ranges: NDArray[np.int64], width: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Offsets of every whole unit of `width` bytes, aligned by its address, in `ranges`, and the row of its range."""
    starts = ranges[:, 0] + -(ranges[:, 0] + address % width) % width
    counts = np.maximum(ranges[:, 1] - starts, 0) // width
    function = np.repeat(np.arange(len(ranges), dtype=np.int32), counts)
    before = np.cumsum(counts) - counts
    offsets = np.arange(len(function), dtype=np.int64) * width + np.repeat(starts - before * width, counts)
    return offsets, function


def units_at(code: NDArray[np.uint8], offsets: NDArray[np.int64], width: int) -> NDArray[np.uint32]:
    """The little-endian unit at each offset; the offsets are congruent modulo `width`."""
    if not len(offsets):
        return np.zeros(0, np.uint32)
    first, end = int(offsets[0]), int(offsets[-1]) + width
    plane = np.ascontiguousarray(code[first:end]).view(f"<u{width}")
    return plane[(offsets - first) // width].astype(np.uint32)
