"""Hits that the machine code of `breakpoint_code` records -> rows of numbers: where, on which CPU, and registers."""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.breakpoint_code import (
    BIAS,
    COUNT,
    END,
    NEXT,
    NUMBERS,
    PLACES,
    READ_BATCH,
    RECORD_SIZE,
    STEP,
    WORDS,
)

_ROOM: Final = 1 << 15  # records
_HEAD: Final = 2  # words of a record before its registers: the PC as Unicorn has it, and the CPU
_WORD: Final = 8


class HitRecords:
    """Records of one engine. All have the same registers, so that they are rows of an array."""

    def __init__(self, state: "ctypes.Array[ctypes.c_uint64]", read_batch: int, numbers: Sequence[int]) -> None:
        """`state` is what the code works with. `read_batch` is the address of uc_reg_read_batch, `numbers` are
        Unicorn's of the registers in the trap frame."""
        assert len(state) == WORDS
        self._state = state
        self._numbers = numbers
        self.registers: tuple[int, ...] = ()  # indexes in the trap frame
        self._rows = np.zeros((_ROOM, _HEAD), np.uint64)
        self._wanted = (ctypes.c_int * 1)()
        self._places = np.zeros((_ROOM, 1), np.uint64)
        state[READ_BATCH] = read_batch
        self._begin()

    def want(self, registers: Iterable[int]) -> None:
        """Let records have these registers as well. There must be none that was not taken."""
        assert self._state[NEXT] == self._rows.ctypes.data
        self.registers = tuple(sorted({*self.registers, *registers}))
        count = len(self.registers)
        self._rows = np.zeros((_ROOM, _HEAD + count), np.uint64)  # narrow registers leave the rest of a word as it is
        self._wanted = (ctypes.c_int * count)(*(self._numbers[index] for index in self.registers))
        words = np.arange(self._rows.size, dtype=np.uint64).reshape(self._rows.shape)[:, _HEAD:]
        self._places = np.uint64(self._rows.ctypes.data) + np.uint64(_WORD) * words
        self._begin()

    def _begin(self) -> None:
        state, start = self._state, self._rows.ctypes.data
        state[NEXT], state[END] = start, start + self._rows.nbytes
        state[NUMBERS], state[COUNT] = ctypes.addressof(self._wanted), len(self.registers)
        state[PLACES] = self._places.ctypes.data
        state[RECORD_SIZE], state[STEP] = self._rows.strides[0], self._places.strides[0]

    def take(self) -> NDArray[np.uint64]:
        """(n, 2 + registers) what was recorded since the last time, in order: the breakpoint's address, the CPU, and
        the registers' values."""
        count = (self._state[NEXT] - self._rows.ctypes.data) // self._rows.strides[0]
        taken = self._rows[:count].copy()
        taken[:, 0] -= np.uint64(self._state[BIAS])
        self._begin()
        return taken
