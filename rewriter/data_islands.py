"""Instructions of functions -> the same, with those refused that are data after the end of a function's code.

A symbol or an FDE may cover tables, literals and text next to the code of its function. What nothing falls into and no
branch leads to is an island: often code all the same (a landing pad, the cases of a switch), so it is refused only if
something shows that it is data: an instruction reads it, or it has what no code has.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.code_shape import Pattern
from kinst.targets.columns import holds, is_in, is_one_of, unique
from kinst.targets.elf.header import FileKind
from kinst.targets.functions.address_uses import Use, UsesOf, address_uses
from kinst.targets.functions.found import Evidence, Functions
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image
from kinst.targets.instruction import NO_CODE, Flow, Instructions, Reason
from kinst.targets.module_code import code_of
from kinst.targets.patterns import matches

_ENDS: Final = (Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN, Flow.STOP)
_DIRECT: Final = (Flow.JUMP, Flow.BRANCH, Flow.CALL)
_ROUNDS: Final = 2  # islands are looked for: what branches of islands lead to is one, too
_HEAD: Final = 8  # bytes of an instruction that patterns examine


def refuse_islands(image: Image, functions: Functions, found: Instructions, uses_of: UsesOf) -> Instructions:
    """The same instructions, in address order; those in islands of data are refused."""
    is_user = is_hosted(image)
    # First with every function's start taken for code; if code reads at a doubtful one, that is data after all, and
    # what only it reaches is an island as well.
    reached = _reached(found, found.target[:0])
    if reached.all() and not is_user:
        return found
    doubtful = _doubtful_starts(functions, found) if is_user else found.target[:0]
    read = _read(image, found, reached, doubtful, uses_of)
    if len(doubtful) and is_in(read, doubtful).any():
        reached = _reached(found, read[is_in(read, doubtful)])
    found = found.refuse(_read_islands(found, reached, read), Reason.DATA)
    islands = np.flatnonzero(~reached)
    odd = _odd(image, found, islands, is_user=is_user)
    if is_user:  # kernels have barriers after returns, against speculation
        # A program's code has no reason to run on into nothing, so an island that does is a table.
        odd = np.append(odd, _open(functions, found, islands))
    return found.refuse(_whole(reached, odd), Reason.UNREACHED)


def _reached(found: Instructions, data: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Rows to which control falls or a direct branch leads, beginning at the starts of functions; those in `data` do
    not count."""
    fresh = np.ones(len(found), np.bool_)
    fresh[1:] = found.function[1:] != found.function[:-1]
    after_end = np.append(False, is_one_of(found.flow[:-1], _ENDS))[: len(found)]
    is_direct = is_one_of(found.flow, _DIRECT)
    reached = np.ones(len(found), np.bool_)
    for _ in range(_ROUNDS):
        # Only branches of reached code count: those of a table that decodes are chance.
        begins = holds(found.address, found.target[is_direct & reached])
        begins |= fresh & ~is_in(found.address, data) if len(data) else fresh
        known = np.flatnonzero(begins | after_end | fresh)
        state = np.repeat(begins[known], np.diff(np.append(known, len(found))))
        if np.array_equal(state, reached):
            break
        reached = state
    # Padding is refused already, for a better reason.
    reached[found.reason == Reason.PADDING] = True
    return reached


def _doubtful_starts(functions: Functions, found: Instructions) -> NDArray[np.uint64]:
    """Starts of functions that no call or FDE vouches for: a symbol may name data, whatever its type."""
    address = functions.address[is_one_of(functions.evidence, (Evidence.SYMBOL, Evidence.POINTER, Evidence.LABEL))]
    called = unique(found.target[is_one_of(found.flow, _DIRECT)])
    return address[~is_in(address, called)]


def _read(
    image: Image, found: Instructions, reached: NDArray[np.bool_], doubtful: NDArray[np.uint64], uses_of: UsesOf
) -> NDArray[np.uint64]:
    """Addresses in islands, and of doubtful starts, that reached code reads; ascending."""
    islands = ~reached

    def wanted(address: NDArray[np.uint64]) -> NDArray[np.bool_]:
        chosen = image.is_code(address)
        rows, is_there = _rows_at(found, address[chosen])
        chosen[chosen] = islands[rows] & is_there | is_in(address[chosen], doubtful)
        return chosen

    return address_uses(image, found, uses_of, wanted).by_rows(reached).of(Use.READ)


def _rows_at(found: Instructions, address: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The rows that have bytes at some addresses, and whether there are such rows: few functions may be decoded."""
    rows = np.maximum(np.searchsorted(found.address, address, "right") - 1, 0)
    is_there: NDArray[np.bool_] = address - found.address[rows] < found.size[rows]
    return rows, is_there


def _read_islands(found: Instructions, reached: NDArray[np.bool_], read: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Rows of islands from an address on that is read."""
    rows, is_there = _rows_at(found, read)
    rows = rows[is_there & ~reached[rows]]
    marks = reached.copy()  # at each of these the state is known again
    marks[rows] = True
    known = np.flatnonzero(marks)
    is_data = np.zeros(len(found), np.bool_)
    is_data[rows] = True
    first = np.append(known, len(found))
    state = np.zeros(len(found), np.bool_)
    state[int(first[0]) :] = np.repeat(is_data[known], np.diff(first))
    return state


def _whole(reached: NDArray[np.bool_], odd: NDArray[np.intp]) -> NDArray[np.bool_]:
    """All rows of the islands that hold some of the rows `odd`."""
    number = np.cumsum(np.append(True, reached[1:] != reached[:-1]))
    spoilt = np.zeros(int(number[-1]) + 1 if len(number) else 1, np.bool_)
    # One contradiction condemns the island: a table is data from end to end.
    spoilt[number[odd]] = True
    found: NDArray[np.bool_] = spoilt[number] & ~reached
    return found


def _odd(image: Image, found: Instructions, rows: NDArray[np.intp], *, is_user: bool) -> NDArray[np.intp]:
    """The rows among these that no code has."""
    target = found.target[rows]
    place = np.searchsorted(found.address, target, "right") - 1
    inside = (place >= 0) & (target > found.address[place]) & (target < found.address[place] + found.size[place])
    # A weak symbol that is defined nowhere is at 0, and a call of it is guarded.
    astray = is_one_of(found.flow[rows], _DIRECT) & (target != 0) & (inside | ~image.is_code(target))
    if image.kind is FileKind.REL:
        astray[:] = False  # their targets are written by the linker
    odd = astray | is_one_of(found.reason[rows], NO_CODE)
    if is_user:
        odd |= _matching(image, found, rows, image.facts.code_shape.absurd)
    found_rows: NDArray[np.intp] = rows[odd]
    return found_rows


def _open(functions: Functions, found: Instructions, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows among these after which control would run on into what is no function: a table that decodes for a
    while."""
    end = found.address + found.size
    is_last = np.append(found.address[1:] != end[:-1], True)[: len(found)]
    rows = rows[is_last[rows] & ~is_one_of(found.flow[rows], (*_ENDS, Flow.CALL, Flow.INDIRECT_CALL))]
    found_rows: NDArray[np.intp] = rows[~is_in(end[rows], functions.address)]
    return found_rows


def _matching(
    image: Image, found: Instructions, rows: NDArray[np.intp], patterns: tuple[Pattern, ...]
) -> NDArray[np.bool_]:
    matched = np.zeros(len(rows), np.bool_)
    for region in image.code_regions:
        offset = (found.address[rows] - np.uint64(region.address)).view(np.int64)
        inside = np.flatnonzero((offset >= 0) & (offset < region.size))
        code = np.append(code_of(image, region), np.zeros(_HEAD, np.uint8))
        windows = np.ndarray((len(code) - _HEAD + 1,), "<u8", code, strides=(1,))
        size = np.minimum(found.size[rows[inside]], _HEAD).astype(np.uint64)
        kept = np.uint64(2**64 - 1) >> (np.uint64(64) - size * np.uint64(8))
        matched[inside] = matches(windows[offset[inside]] & kept, patterns)
    return matched
