"""Hits that the machine code of `host.breakpoints` records -> rows of numbers: where, on which CPU, when, by which
thread, and registers."""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.cpu_places import CpuPlaces
from kinst.runtime.engine.host.breakpoints import KEY_ROWS, PAGE_SHIFT, BreakpointState, KeyRow, Record
from kinst.runtime.engine.host.fields import index
from kinst.targets.values import dataclass

_MOST: Final = 1 << 15  # records in the buffer
_WORD: Final = 8
HEAD: Final = ctypes.sizeof(Record) // _WORD  # words of a record before its registers
_NEXT, _PLACES = index(BreakpointState, "next"), index(BreakpointState, "read_places")
_HIGHEST: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ClockWord:
    """How the machine code gets the time (ns): the 64-bit word at `address` in the host's memory, less `factor` times
    the instructions that are left of the running budget; with `is_host` plus CLOCK_MONOTONIC."""

    address: int
    factor: int = 0
    is_host: bool = False


class ThreadKeys:
    """The table in which the machine code finds the threads of hits. It may lose any: then the hit is passed on."""

    def __init__(self, state: BreakpointState) -> None:
        """No thread is known."""
        self._rows = np.zeros((KEY_ROWS, ctypes.sizeof(KeyRow) // _WORD), np.uint64)
        self._any = ctypes.c_uint64()  # a word that always has its value
        self._is_empty = True
        state.keys = self._rows.ctypes.data

    def put(self, low: int, high: int, key: int, identity: int = 0, words: Sequence[tuple[int, int]] = ()) -> None:
        """Let hits of a thread be recorded with a key: those whose stack pointer is above `low` and up to `high`, both
        in the page of the byte below, as long as the identifying register and at most two 64-bit words, at addresses of
        the host's memory, have these values. A stack that ends where memory does is not kept."""
        if high > _HIGHEST:
            return
        # The host code compares two words in any case: those that are not given are one that always is 0.
        same = ctypes.addressof(self._any), 0
        first, second = (*words, same, same)[:2]
        row = np.array((low, high, identity, *first, *second, key), np.uint64)
        self._rows[(high - 1 >> PAGE_SHIFT) % KEY_ROWS] = row
        self._is_empty = False

    def clear(self) -> None:
        """Forget all of them."""
        if not self._is_empty:
            self._rows[:] = 0  # no stack pointer is above 0 and up to 0
            self._is_empty = True


class HitRecords:
    """Records of one engine. All have the same registers, so that they are rows of an array."""

    def __init__(
        self,
        state: BreakpointState,
        places: CpuPlaces,
        clock: ClockWord,
    ) -> None:
        """`state` is what the code works with, and `places` says where the CPU's registers are."""
        self._state = state
        self.bias = state.bias
        self._live = memoryview(state).cast("B").cast("Q")  # which is faster
        self._numbers, self._general, self._number_of = places.numbers, places.copied, places.number_of
        self.registers: tuple[int, ...] = ()  # indexes in the trap frame
        self._identity: tuple[int, ...] = ()  # Unicorn's number of the register that is not in the trap frame
        self._stack_pointer: int | None = None
        self._rows = np.zeros((_MOST, HEAD), np.uint64)
        self._wanted = (ctypes.c_int * 0)()
        self._sources = (ctypes.c_uint64 * 0)()
        self._places = np.zeros((_MOST, 0), np.uint64)
        self._clock = clock
        state.clock, state.factor = clock.address, clock.factor
        state.read_batch = places.read_batch
        self.threads = ThreadKeys(state)
        self._begin()

    def want(self, registers: Iterable[int]) -> None:
        """Let records have these registers as well. All records must have been taken."""
        # Their width changes, so that the buffer is made anew.
        assert self.is_empty()
        self.registers = tuple(sorted({*self.registers, *registers}))
        sources = [self._general[index] for index in self.registers if index < len(self._general)]
        read = [*(self._numbers[index] for index in self.registers[len(sources) :]), *self._identity]
        self._sources = (ctypes.c_uint64 * len(sources))(*sources)
        self._wanted = (ctypes.c_int * len(read))(*read)
        width = HEAD + len(sources) + len(read)
        self._rows = np.zeros((_MOST, width), np.uint64)  # narrow registers leave the rest of a word as it is
        words = np.arange(self._rows.size, dtype=np.uint64).reshape(self._rows.shape)[:, width - len(read) :]
        self._places = np.uint64(self._rows.ctypes.data) + np.uint64(_WORD) * words
        self._begin()

    def want_time(self) -> None:
        """Let records have the time. The host's takes a call of clock_gettime, which is left out otherwise."""
        if self._clock.is_host:
            self._state.gettime = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0

    def identify(self, stack_pointer: int, identity: str | None) -> None:
        """Set what identifies a thread: the stack pointer's index in the trap frame, and another register (None: none).
        All records must have been taken."""
        self._stack_pointer = stack_pointer
        self._identity = () if identity is None else (self._number_of(identity),)
        self.want([stack_pointer])

    def _begin(self) -> None:
        state = self._state
        self._start, self._size = self._rows.ctypes.data, self._rows.strides[0]
        self._words = self._rows.data.cast("B").cast("Q")
        self.width = self._size // _WORD
        state.end = self._start + self._rows.nbytes
        state.sources, state.source_count = ctypes.addressof(self._sources), len(self._sources)
        state.read_numbers, state.read_count = ctypes.addressof(self._wanted), len(self._wanted)
        self._first_place = self._places.ctypes.data
        state.record_size, state.places_size = self._rows.strides[0], _WORD * len(self._wanted)
        if self._stack_pointer is not None:
            state.stack_pointer = _WORD * (HEAD + self.registers.index(self._stack_pointer))
            state.identity = state.stack_pointer if not self._identity else self._rows.strides[0] - _WORD
            state.identity_mask = (1 << 64) - 1 if self._identity else 0
        self._rewind()

    def _rewind(self) -> None:
        self._state.next, self._state.read_places = self._start, self._first_place

    def is_empty(self) -> bool:
        """Whether nothing was recorded since the last time."""
        return self._state.next == self._start

    def take(self) -> NDArray[np.uint64]:
        """(n, `width`) what was recorded since the last time, in order: the breakpoint's address plus `bias`, the CPU,
        the time (ns), the key of the thread where that is wanted, the registers' values, and unused words. The array
        is a view: it is valid until the guest runs again."""
        taken = self._rows[: (self._state.next - self._start) // self._size]
        self._rewind()
        return taken

    def take_words(self) -> list[int]:
        """The same as one list, row after row: the fastest way for a few records."""
        state, start = self._live, self._start
        end = state[_NEXT]
        if end == start:
            return []
        state[_NEXT], state[_PLACES] = start, self._first_place
        return self._words[: end - start >> 3].tolist()
