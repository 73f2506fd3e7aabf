"""The blocks with which functions begin, in the order in which they ran: four bytes each, compressed as they come.

A number is that of a block, from 1 on. One with the highest bit set says which CPU runs from there on.
"""

import ctypes
import mmap
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.host.cover import CoverState
from kinst.targets.compression import zstd_content, zstd_frame

CPU: Final = 1 << 31  # with its number, in place of a block's
ROOM: Final = 1 << 18  # numbers that are compressed at a time: 1 MiB
_BYTES: Final = 4
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class CallLog:
    """What one engine ran. The machine code of `cover` stores numbers until there is no more room."""

    def __init__(self, state: CoverState, last: Callable[[], int], fail: Callable[[BaseException], None]) -> None:
        """`state` is the hook's. `last` gives the number of the block that is counted; `fail` is called with what goes
        wrong where nothing can be raised."""
        self._state, self._last, self._fail = state, last, fail
        self._memory = mmap.mmap(-1, ROOM * _BYTES)
        self._numbers = memoryview(self._memory).cast("I")
        self._frames: list[bytes] = []
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._callback = _FUNCTION(self._full)
        state.full = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        state.next, state.end = self._start, self._start + ROOM * _BYTES

    @property
    def _used(self) -> int:
        return (self._state.next - self._start) // _BYTES

    def _full(self, _uc: int, _address: int, _size: int, _state: int) -> None:
        """There is no room for the number of the last block."""
        try:
            self.add(self._last())
        except BaseException as error:  # it cannot be raised through ctypes, which would print it and continue
            self._fail(error)

    def add(self, number: int) -> None:
        """Append one: what the machine code does. The last one stays in memory, since it may be taken back."""
        if self._state.next == self._state.end:
            self._frames.append(zstd_frame(memoryview(self._memory)))
            self._state.next = self._start
        self._numbers[self._used] = number
        self._state.next += _BYTES

    def take_back(self) -> None:
        """Remove the last one."""
        self._state.next -= _BYTES

    def run_as(self, cpu: int) -> None:
        """Another CPU runs from now on."""
        if self._used and self._numbers[self._used - 1] & CPU:
            self.take_back()
        self.add(CPU | cpu)

    def taken(self) -> Iterator[NDArray[np.uint32]]:
        """All numbers so far, in parts."""
        for frame in self._frames:
            yield np.frombuffer(zstd_content(memoryview(frame), ROOM * _BYTES), np.uint32)
        yield np.frombuffer(self._memory, np.uint32)[: self._used].copy()
