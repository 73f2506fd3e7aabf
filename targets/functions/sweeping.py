"""Spans of an image's code -> their instructions, across whatever does not decode.

A dissector stops a range at bytes that are no instruction (amd64). Here the sweep resumes after them, so that data in
.text hides nothing that follows it.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import is_one_of
from kinst.targets.image import CodeRegion, Image
from kinst.targets.instruction import NO_CODE, Flow, Instructions, Reason
from kinst.targets.module_code import code_of
from kinst.targets.patterns import matches
from kinst.targets.spans import Spans
from kinst.targets.values import dataclass

Sweep = Callable[[NDArray[np.uint8], int, NDArray[np.int64]], Instructions]

_WORD: Final = 8
_FILL_RUN: Final = 32  # equal filling bytes that are no code: more than any instruction or alignment has
_ROUNDS: Final = 64  # of resuming after undecodable bytes, before the rest is cut into pieces
_PIECE: Final = 1024  # their size; a piece is given up after another _ROUNDS
_HEAD: Final = 8  # bytes of an instruction that patterns examine


@dataclass(frozen=True, slots=True)
class Swept:
    """Instructions in address order and what they look like; one row each. Rows need not be contiguous."""

    instructions: Instructions
    heads: NDArray[np.uint64]  # the first eight bytes
    is_padding: NDArray[np.bool_]
    is_junk: NDArray[np.bool_]  # not code: does not decode, or is read as data

    def __len__(self) -> int:
        return len(self.heads)

    def take(self, rows: NDArray[np.intp]) -> "Swept":
        """Some rows, ascending."""
        return Swept(self.instructions.take(rows), self.heads[rows], self.is_padding[rows], self.is_junk[rows])

    @property
    def address(self) -> NDArray[np.uint64]:
        """The link address of each instruction."""
        return self.instructions.address

    def rows_at(self, address: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The row of the instruction at each address; -1: none begins there."""
        rows = np.searchsorted(self.address, address)
        is_there = rows < len(self)
        is_there[is_there] = self.address[rows[is_there]] == address[is_there]
        return np.where(is_there, rows, -1)

    @property
    def end(self) -> NDArray[np.uint64]:
        """The link address after each instruction."""
        return self.instructions.address + self.instructions.size

    @property
    def is_terminator(self) -> NDArray[np.bool_]:
        """Which rows nothing falls through."""
        ends = (Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN, Flow.STOP)
        return is_one_of(self.instructions.flow, ends) | self.is_junk


def without_fill(image: Image, spans: Spans) -> Spans:
    """`spans` less long runs of filling bytes, and less spans of nothing else.

    A vmlinux has 2 MB of 0xcc up to the next huge page, and padding after each of 46,000 functions: decoding those
    takes longer than the rest.
    """
    fill = np.array(image.facts.code_shape.fill, np.uint8)
    kept = [np.zeros((0, 2), np.uint64)]
    for region in image.code_regions:
        inside = spans[_inside(spans, region)]
        if len(inside):
            kept.append(_without_fill(image.data[region.offset : region.offset + region.size], region, inside, fill))
    found = np.concatenate(kept)
    return found[np.argsort(found[:, 0], kind="stable")]


def _without_fill(code: NDArray[np.uint8], region: CodeRegion, spans: Spans, fill: NDArray[np.uint8]) -> Spans:
    first, last = (spans - np.uint64(region.address)).astype(np.int64).T
    varied = _varied(code, first, last)
    wanted = varied | ~np.isin(code[first], fill)
    is_long = spans[:, 1] - spans[:, 0] >= 2 * _FILL_RUN
    cut = [
        _cut_runs(code[start:end], fill) + np.uint64(start + region.address)
        for start, end in zip(first[wanted & is_long].tolist(), last[wanted & is_long].tolist(), strict=True)
    ]
    return np.concatenate([spans[wanted & ~is_long], *cut])


def _varied(code: NDArray[np.uint8], first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the ranges have bytes that differ. Code does so at once: few ranges are examined to their end."""
    several = last - first > 1
    varied: NDArray[np.bool_] = several & (code[first] != code[np.minimum(first + 1, len(code) - 1)])
    rest = np.flatnonzero(several & ~varied)
    if len(rest):
        differs = np.append(code[1:] != code[:-1], False)  # each byte from the one after it
        edges = np.stack([first[rest], last[rest] - 1], axis=1)
        varied[rest] = np.logical_or.reduceat(differs, edges.reshape(-1))[::2]
    return varied


def _inside(spans: Spans, region: CodeRegion) -> NDArray[np.bool_]:
    return spans[:, 0] - np.uint64(region.address) < np.uint64(region.size)  # wraps round below: not less


def _cut_runs(code: NDArray[np.uint8], fill: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(n, 2) offsets of what is left of some code between runs. A run starts and ends at an aligned address."""
    words = np.ndarray((len(code) // _WORD,), "<u8", np.ascontiguousarray(code))  # bytes take eight times as long
    at = np.flatnonzero(np.isin(words, fill * np.uint64(0x0101_0101_0101_0101)))
    cuts = np.flatnonzero((np.diff(at) > 1) | (words[at[1:]] != words[at[:-1]])) + 1
    first, last = at[np.append(0, cuts)[: len(at)]], at[np.append(cuts, len(at))[: len(at)] - 1]
    is_run = (last - first + 1) * _WORD >= _FILL_RUN
    starts, ends = first[is_run] * _WORD, (last[is_run] + 1) * _WORD
    for _ in range(1, _WORD):  # they end in a word that is not all filling
        ends = ends + ((ends < len(code)) & (code[np.minimum(ends, len(code) - 1)] == code[starts]))
    left = np.append(0, ends), np.append(starts, len(code))
    pairs = np.stack(left, axis=1)
    return pairs[pairs[:, 0] < pairs[:, 1]].astype(np.uint64)


def sweep_spans(image: Image, spans: Spans, sweep: Sweep) -> Swept:
    """Every instruction of `spans`. `function` is the row of the span."""
    parts = []
    for region in image.code_regions:
        rows = np.flatnonzero(_inside(spans, region))
        if len(rows):
            parts.append(_sweep_region(image, region, spans[rows], sweep, int(rows[0])))
    return _joined(parts)


def _sweep_region(image: Image, region: CodeRegion, spans: Spans, sweep: Sweep, first_row: int) -> Swept:
    base, end = int(spans[0, 0]), int(spans[-1, 1])
    # From the first span to the last at once: what is between them is not decoded.
    code = code_of(image, region)[base - region.address : end - region.address]
    ranges = (spans - np.uint64(base)).astype(np.int64)
    found = _sweep_on(code, base, ranges, sweep)
    # What pieces and resumed ranges say in `function` does not matter: it is the span that holds the address.
    function = np.searchsorted(spans[:, 0], found.address, "right") - 1 + first_row
    return _described(image, replace(found, function=function.astype(np.int32)), code, base)


def _sweep_on(code: NDArray[np.uint8], base: int, ranges: NDArray[np.int64], sweep: Sweep) -> Instructions:
    """Sweep, and again from after what did not decode, until all is done; what resists is cut up and swept at once."""
    parts = []
    for _ in range(2):
        for _ in range(_ROUNDS):
            if not len(ranges):
                break
            found = sweep(code, base, ranges)
            parts.append(found)
            ranges = _unfinished(found, base, ranges)
        # Undecodable bytes without end are data. In pieces they cost one round each in parallel, instead of one round
        # for each such byte.
        ranges = _pieces(ranges)
    joined = Instructions(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Instructions))
    )
    return joined.take(np.argsort(joined.address, kind="stable")) if len(parts) > 1 else joined


def _unfinished(found: Instructions, base: int, ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    last = np.searchsorted(found.function, np.arange(len(ranges)), "right") - 1
    if not len(found):
        return ranges[:0]
    reached = (found.address[last] + found.size[last] - np.uint64(base)).astype(np.int64)
    went_on = (last >= 0) & (found.function[last] == np.arange(len(ranges)))
    # A dissector stops a range at its first undecodable byte: the last row of such a range shows how far it came.
    more = went_on & (reached < ranges[:, 1]) & (found.reason[last] == Reason.UNDECODABLE)
    return np.stack([reached[more], ranges[more, 1]], axis=1)


def _pieces(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    cut = [(piece, min(piece + _PIECE, end)) for start, end in ranges.tolist() for piece in range(start, end, _PIECE)]
    return np.array(cut, np.int64).reshape(-1, 2)


def _described(image: Image, found: Instructions, code: NDArray[np.uint8], base: int) -> Swept:
    padded = np.concatenate([code, np.zeros(_HEAD, np.uint8)])
    windows = np.ndarray((len(code),), "<u8", padded, strides=(1,))
    heads = windows[(found.address - np.uint64(base)).astype(np.intp)]
    # Patterns of padding are those of one instruction: the bytes of the next are cut off.
    kept = np.uint64(2**64 - 1) >> (np.uint64(64) - np.minimum(found.size, _HEAD).astype(np.uint64) * np.uint64(8))
    is_padding = matches(heads & kept, image.facts.code_shape.padding)
    is_junk = is_one_of(found.reason, NO_CODE)
    return Swept(found, heads, is_padding, is_junk)


def _joined(parts: list[Swept]) -> Swept:
    if not parts:
        words, bytes_, none = np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.bool_)
        empty = Instructions(words, words, np.zeros(0, np.int32), bytes_, bytes_, bytes_, bytes_, bytes_)
        return Swept(empty, words, none, none)
    instructions = Instructions(
        *(np.concatenate([getattr(part.instructions, field.name) for part in parts]) for field in fields(Instructions))
    )
    return Swept(
        instructions,
        np.concatenate([part.heads for part in parts]),
        np.concatenate([part.is_padding for part in parts]),
        np.concatenate([part.is_junk for part in parts]),
    )
