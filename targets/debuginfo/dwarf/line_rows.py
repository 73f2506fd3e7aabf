"""A line number program -> its rows: which line of the source the code at an address comes from (DWARF 5, 6.2)."""

from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.debuginfo.dwarf.forms import DAMAGE
from kinst.targets.debuginfo.dwarf.line_files import LineFiles
from kinst.targets.debuginfo.dwarf.numbers import At
from kinst.targets.debuginfo.dwarf.units import UnitEntries
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb, signed_leb
from kinst.targets.values import dataclass

_WORD: Final = (1 << 64) - 1
_END: Final = -1  # as the file of a row: the sequence ends there
_COPY, _ADVANCE_PC, _SET_FILE = 1, 2, 4  # standard opcodes
_END_SEQUENCE, _SET_ADDRESS = 1, 2  # extended opcodes


@dataclass(frozen=True, slots=True)
class LineRows:
    """Rows in address order, each up to the next one; `file` is an index of `files`, or -1 where no code follows."""

    address: NDArray[np.uint64]
    file: NDArray[np.int64]
    line: NDArray[np.int64]
    files: tuple[str, ...]


def line_rows(entries: UnitEntries) -> LineRows:
    """The rows of a unit. Raises ImageError: the program is damaged."""
    offset, section = entries.root.number(At.STMT_LIST), entries.units.sections.get("line")
    if offset is None or not len(section):
        return LineRows(*_columns(array("Q"), array("q"), array("q")), ())
    try:
        columns = _Program(section, offset).rows()
    except ImageError:
        raise
    except DAMAGE:
        what = f"the line number program at {offset:#x} of .debug_line is damaged"
        raise entries.damaged(ImageError(what)) from None
    numbers = sorted(set(columns[1].tolist()) - {_END})
    names = LineFiles(entries)
    place = {number: at for at, number in enumerate(numbers)} | {_END: _END}
    file = np.array([place[number] for number in columns[1].tolist()], np.int64)
    return LineRows(columns[0], file, columns[2], tuple(names.path(number) for number in numbers))


_Columns = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]


def _columns(address: "array[int]", file: "array[int]", line: "array[int]") -> _Columns:
    return np.array(address, np.uint64), np.array(file, np.int64), np.array(line, np.int64)


@dataclass(slots=True)
class _State:
    """The registers of the state machine that are kept, and where its next opcode is."""

    at: int
    address: int = 0
    file: int = 1
    line: int = 1


class _Program:
    """One program."""

    def __init__(self, section: memoryview, offset: int) -> None:
        """Read the header."""
        is_wide = bytes(section[offset : offset + 4]) == b"\xff" * 4
        start, wide = (12, 8) if is_wide else (4, 4)
        length = int.from_bytes(section[offset + start - wide : offset + start], "little")
        self._data = data = bytes(section[offset : offset + start + length])
        version = int.from_bytes(data[start : start + 2], "little")
        if len(data) < start + length or not 2 <= version <= 5:
            raise IndexError(length)
        at = start + 2 + (2 if version >= 5 else 0)
        self._first = at + wide + int.from_bytes(data[at : at + wide], "little")
        at += wide
        self._unit = data[at]
        at += 2 if version >= 4 else 1  # maximum_operations_per_instruction, 1 on these machines
        self._line_base = (data[at + 1] ^ 0x80) - 0x80  # behind default_is_stmt
        self._line_range, opcode_base = data[at + 2], data[at + 3]
        if not self._line_range or not opcode_base:
            raise ValueError("line_range")
        self._lengths = data[at + 3 : at + 3 + opcode_base]

    def rows(self) -> _Columns:
        """All rows, sorted; of several at an address the last counts."""
        data, end, state = self._data, len(self._data), _State(self._first)
        base, span, opcode_base = self._line_base, self._line_range, len(self._lengths)
        columns = addresses, files, lines = array("Q"), array("q"), array("q")
        while state.at < end:
            opcode = data[state.at]
            state.at += 1
            if opcode < opcode_base and opcode != _COPY:
                if opcode == 0:
                    self._extended(state, columns)
                else:
                    self._standard(opcode, state)
                continue
            if opcode != _COPY:
                opcode -= opcode_base
                state.address += opcode // span * self._unit
                state.line += base + opcode % span
            addresses.append(state.address & _WORD)
            files.append(state.file)
            lines.append(state.line)
        return _sorted(_columns(*columns))

    def _extended(self, state: _State, columns: "tuple[array[int], array[int], array[int]]") -> None:
        data = self._data
        size, at = leb(data, state.at)
        if data[at] == _END_SEQUENCE:
            for column, value in zip(columns, (state.address & _WORD, _END, 0), strict=True):
                column.append(value)
            state.address, state.file, state.line = 0, 1, 1
        elif data[at] == _SET_ADDRESS:
            state.address = int.from_bytes(data[at + 1 : at + size], "little")
        state.at = at + size

    def _standard(self, opcode: int, state: _State) -> None:
        data, at, step = self._data, state.at, 0
        match opcode:
            case 3:  # DW_LNS_advance_line
                step, state.at = signed_leb(data, at)
                state.line += _bounded(step)
            case 9:  # DW_LNS_fixed_advance_pc
                state.address += int.from_bytes(data[at : at + 2], "little")
                state.at = at + 2
            case 8:  # DW_LNS_const_add_pc
                state.address += (255 - len(self._lengths)) // self._line_range * self._unit
            case _:
                for _ in range(self._lengths[opcode]):
                    step, state.at = leb(data, state.at)
                if opcode == _ADVANCE_PC:
                    state.address += step * self._unit
                elif opcode == _SET_FILE:
                    state.file = _bounded(step)


def _bounded(step: int) -> int:
    if abs(step) >= 1 << 31:
        raise ValueError(step)
    return step


def _sorted(columns: _Columns) -> _Columns:
    """Rows in address order. Where a sequence ends and another begins, there is code."""
    address, file, line = columns
    order = np.lexsort((file >= 0, address))
    address, file, line = address[order], file[order], line[order]
    is_last = np.append(address[1:] != address[:-1], np.ones(min(len(address), 1), np.bool_))
    return address[is_last], file[is_last], line[is_last]
