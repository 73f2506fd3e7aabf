"""An image's code with counts, and its debug information -> how often each line of its source ran."""

from collections.abc import Iterator
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.coverage.document import CoveredImage, Function
from kinst.runtime.coverage.executed import Executed, executed
from kinst.targets.debuginfo.dwarf.line_rows import LineRows, line_rows
from kinst.targets.debuginfo.dwarf.numbers import At
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.units import Units
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass

_LARGEST_LINE: Final = 1 << 24  # a larger number is damage


@dataclass(slots=True)
class SourceFile:
    """Lines of a file with their counts; and the functions that begin there: line, name and count."""

    path: str
    lines: dict[int, int] = field(default_factory=dict)
    functions: list[tuple[int, str, int]] = field(default_factory=list)


def source_files(image: CoveredImage, debug: DebugSections) -> list[SourceFile]:
    """The files that an image was made of, by path. A line runs as often as the one of its instructions that runs most
    often, and has a count of 0 if none of them ran. What is not known to have run, nor not to have, is left out, and so
    are units of the debug information that are damaged."""
    code, found = _Code(image), dict[str, SourceFile]()
    for rows in _rows(Units(debug)):
        code.add(rows, found)
    return [found[path] for path in sorted(found) if found[path].lines]


def _rows(units: Units) -> Iterator[LineRows]:
    seen = set[int | None]()
    for unit in units.all:
        try:
            entries = units.open(unit)
            program = entries.root.number(At.STMT_LIST)
            if program in seen:  # units may share one: it is read once, however many say that it is theirs
                continue
            seen.add(program)
            rows = line_rows(entries)
        except ImageError:
            continue
        if len(rows.address):
            yield rows


class _Code:
    """The functions of an image, and the counts of their addresses."""

    def __init__(self, image: CoveredImage) -> None:
        self._functions = image.functions
        self._start = np.array([one.address for one in image.functions], np.uint64)
        self._end = np.array([one.address + one.size for one in image.functions], np.uint64)
        pieces = list(_pieces(image))
        self._begins = np.sort(np.array([start for start, _, _ in pieces], np.uint64))
        self._counts = _executed(pieces)
        self._unknown = _executed([(at, size, 1) for at, size in image.unknown])

    def add(self, rows: LineRows, found: dict[str, SourceFile]) -> None:
        """Add the lines of a unit."""
        inside = (rows.file >= 0) & (rows.line > 0) & (rows.line < _LARGEST_LINE) & self._is_code(rows.address)
        chosen = np.flatnonzero(inside)
        if not len(chosen):
            return
        counts = self._counts_of(rows)
        is_known = (counts > 0) | (self._unknown.at(rows.address) == 0)
        chosen = chosen[is_known[chosen]]
        lines = rows.file[chosen] * _LARGEST_LINE + rows.line[chosen]
        keys, place = np.unique(lines, return_inverse=True)
        most = np.zeros(len(keys), np.int64)
        np.maximum.at(most, place, counts[chosen])
        for key, count in zip(keys.tolist(), most.tolist(), strict=True):
            path = rows.files[key // _LARGEST_LINE]
            if path:
                known = found.setdefault(path, SourceFile(path)).lines
                line = key % _LARGEST_LINE
                known[line] = max(count, known.get(line, 0))
        self._add_functions(rows, chosen, found)

    def _counts_of(self, rows: LineRows) -> NDArray[np.int64]:
        """For each row the count of the code up to the next one: the largest of its first address and of the blocks
        that begin there."""
        low, high = np.searchsorted(self._begins, (rows.address[0], rows.address[-1])).tolist()
        begins = self._begins[low:high]
        counts = self._counts.at(rows.address)
        np.maximum.at(counts, np.searchsorted(rows.address, begins, "right") - 1, self._counts.at(begins))
        return counts

    def _is_code(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which addresses are in functions: the linker leaves rows of code that it has discarded, at 0."""
        if not len(self._start):
            return np.zeros(len(addresses), np.bool_)
        row = np.searchsorted(self._start, addresses, "right") - 1
        found: NDArray[np.bool_] = (row >= 0) & (addresses < self._end[np.maximum(row, 0)])
        return found

    def _add_functions(self, rows: LineRows, chosen: NDArray[np.intp], found: dict[str, SourceFile]) -> None:
        place = np.minimum(np.searchsorted(self._start, rows.address[chosen]), len(self._start) - 1)
        for number, row in zip(place.tolist(), chosen.tolist(), strict=True):
            one: Function = self._functions[number]
            path = rows.files[int(rows.file[row])]
            if one.address == int(rows.address[row]) and path:
                found[path].functions.append((int(rows.line[row]), one.name, one.runs))


def _pieces(image: CoveredImage) -> Iterator[tuple[int, int, int]]:
    for one in image.ran:
        for block in one.blocks:
            yield one.address + block.offset, block.size, block.runs
    yield from image.elsewhere


def _executed(pieces: list[tuple[int, int, int]]) -> Executed:
    if not pieces:
        return executed(())
    start, size, runs = np.array(pieces, np.uint64).T
    times = runs.astype(np.int64)
    return executed([(start, times), (start + size, -times)])
