"""Blocks of code that run -> how often each did, counted by the hook at blocks with a few bytes of host machine code.

A block is what the emulator translates at a time: it has an address and a size, and where a breakpoint or a page ends
it, the same code is another block. So counts are those of instructions: the sum over the blocks that have one, less
those runs of a block that were left before it (an exception, or the end of a budget). An instruction that raises an
exception has begun, and counts, as it does for `-icount`.

Python is asked once for each block what it is. That is the time to find out which image it belongs to: its code is
there and is about to run.
"""

import ctypes
import mmap
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.covered.call_log import CallLog
from kinst.runtime.engine.host.cover import COVER, MOST_RANGES, BlockRow, CodeRange, CoverState
from kinst.runtime.engine.host.fields import HASH
from kinst.targets.values import dataclass

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_ROW: Final = ctypes.sizeof(BlockRow)
_WORDS: Final = _ROW // 8
_FIRST_ROWS: Final = 1 << 17
_WORD: Final = (1 << 64) - 1
_HALF: Final = 32  # bits
_NUMBER: Final = (1 << _HALF) - 1

Ranges = Sequence[tuple[int, int]]  # start and size


@dataclass(frozen=True, slots=True)
class BlockRuns:
    """Columns with a row for each block, in the order in which they first ran, and the exceptions to them."""

    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    place: NDArray[np.int64]  # what `place` said
    runs: NDArray[np.uint64]
    left: tuple[tuple[int, int, int], ...]  # row, offset, and how many of its runs did not come to that offset


class BlockCoverage:
    """The blocks of one engine."""

    def __init__(
        self,
        place: Callable[[int], int],
        fail: Callable[[BaseException], None],
        is_call: Callable[[int, int], bool] | None = None,
    ) -> None:
        """
        Args:
            place: called with the address of a block that runs for the first time; what it returns is kept with it.
            fail: called with what `place` raises.
            is_call: called with the address, and with what `place` said: whether a function begins there, so that
                each of its runs is kept in order. None: no order is kept.
        """
        self._place, self._fail, self._is_call = place, fail, is_call
        self._addresses, self._sizes, self._places = array("Q"), array("Q"), array("q")
        self._left: Counter[tuple[int, int]] = Counter()
        self._state = CoverState()
        self._callback = _FUNCTION(self._fresh)
        self._state.fresh = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self._in_python = _FUNCTION(lambda _uc, address, size, _state: self.count(address, size))
        self._code = COVER.function()
        self.log = None if is_call is None else CallLog(self._state, self._last_call, fail)
        self._make_rows(_FIRST_ROWS)

    @property
    def hook(self) -> tuple[int, int]:
        """The function that the hook at blocks calls, and its last argument."""
        code = ctypes.cast(self._in_python, ctypes.c_void_p) if self._code is None else self._code.address
        return code.value or 0, ctypes.addressof(self._state)

    def confine(self, ranges: Ranges) -> None:
        """From now on, count only blocks that begin in one of these ranges, of which at most eight count."""
        state = self._state
        for number, (start, size) in enumerate(ranges[:MOST_RANGES]):
            state.ranges[number] = CodeRange(start, size)
        state.count = min(len(ranges), MOST_RANGES)

    @property
    def is_confined(self) -> bool:
        """Whether blocks are counted in ranges only."""
        return self._state.count > 0

    # -- the table ----------------------------------------------------------------------------------------------------

    def _make_rows(self, count: int) -> None:
        self._memory = mmap.mmap(-1, count * _ROW)
        self._words = memoryview(self._memory).cast("Q")
        self._state.rows = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._state.mask, self._state.last = count - 1, 0

    def _find(self, address: int, size: int) -> tuple[int, bool]:
        """The row of a block, as the index of its first word, and whether it is free."""
        words, mask = self._words, self._state.mask
        place = (address * HASH & _WORD) >> 32
        while True:
            at = (place & mask) * _WORDS
            if not words[at + 1]:
                return at, True
            if words[at] == address and words[at + 1] == size:
                return at, False
            place += 1

    def _put(self, at: int, address: int, size: int, runs: int, numbers: int) -> None:
        """`numbers`: the block's, and in the upper half that of a call."""
        words = self._words
        words[at], words[at + 1], words[at + 2], words[at + 3] = address, size, runs, numbers

    def _last_call(self) -> int:
        """The number to be stored for the last block; 0: no function begins with it."""
        return self._words[(self._state.last - self._state.rows) // 8 + 3] >> _HALF

    def _fresh(self, _uc: int, address: int, size: int, _state: int) -> None:
        """A block runs for the first time."""
        size, number, call = size or 1, len(self._addresses), 0
        try:
            place = self._place(address)
            if self._is_call is not None and self._is_call(address, place):
                call = number + 1
        except BaseException as error:  # it cannot be raised through ctypes, which would print it and continue
            self._fail(error)
            place = -1
        for column, value in ((self._addresses, address), (self._sizes, size), (self._places, place)):
            column.append(value)
        if 2 * number > self._state.mask:
            self._grow()
        at, _ = self._find(address, size)
        self._put(at, address, size, 1, call << _HALF | number)
        self._state.last = self._state.rows + 8 * at
        if call and self.log is not None:
            self.log.add(call)

    def _grow(self) -> None:
        old = np.frombuffer(self._memory, np.uint64).reshape(-1, _WORDS)
        rows = old[old[:, 1] > 0].tolist()
        self._make_rows(4 * (self._state.mask + 1))
        for address, size, runs, numbers in rows:
            self._put(self._find(address, size)[0], address, size, runs, numbers)

    def count(self, address: int, size: int) -> None:
        """What the machine code does for a block."""
        state, size = self._state, size or 1
        ranges = [(one.start, one.size) for one in state.ranges[: state.count]]
        if ranges and not any((address - start) & _WORD < length for start, length in ranges):
            state.last = 0
            return
        at, is_free = self._find(address, size)
        if is_free:
            self._fresh(0, address, size, 0)
            return
        self._words[at + 2] += 1
        state.last = state.rows + 8 * at
        if self.log is not None and (call := self._last_call()):
            self.log.add(call)

    # -- what a block did not do --------------------------------------------------------------------------------------

    def take_back(self) -> None:
        """Uncount the last block: the run ended between the hook and the block, which will begin again."""
        if self._state.last:
            self._words[(self._state.last - self._state.rows) // 8 + 2] -= 1
            if self.log is not None and self._last_call():
                self.log.take_back()
            self._state.last = 0

    def leave(self, pc: int, *, has_begun: bool) -> None:
        """The last block was left at the instruction at this PC, which `has_begun` or will begin later. If that is not
        in the block, this had come to its end."""
        if not self._state.last:
            return
        at = (self._state.last - self._state.rows) // 8
        inside = pc - self._words[at]
        if not 0 <= inside < self._words[at + 1]:
            return
        if inside + has_begun == 0:
            self.take_back()
        else:
            self._left[self._words[at + 3] & _NUMBER, inside + has_begun] += 1
            self._state.last = 0

    def taken(self) -> BlockRuns:
        """What ran so far."""
        table = np.frombuffer(self._memory, np.uint64).reshape(-1, _WORDS)
        used = table[table[:, 1] > 0]
        runs = np.zeros(len(self._addresses), np.uint64)
        runs[(used[:, 3] & np.uint64(_NUMBER)).astype(np.int64)] = used[:, 2]
        columns = (np.array(self._addresses, np.uint64), np.array(self._sizes, np.uint64))
        left = tuple((row, offset, times) for (row, offset), times in sorted(self._left.items()))
        return BlockRuns(*columns, np.array(self._places, np.int64), runs, left)
