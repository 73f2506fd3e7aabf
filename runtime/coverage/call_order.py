"""The calls of a run in their order, CPU by CPU: what is compared of two runs, a piece at a time.

A call is a number: which of the functions of all images it is, one image after the other. So a boot of Linux, of tens
of millions of calls, takes some megabytes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.compression import zstd_content, zstd_frame
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass

PIECE: Final = 1 << 18  # calls that are compressed together; the last piece of a CPU has fewer
NOWHERE: Final = (1 << 32) - 1  # a number that is no function's
_BYTES: Final = 4
_CPU: Final = 1 << 31

Calls = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class CallOrder:
    """The calls of one CPU. `pieces`: frames of zstd, in each `PIECE` numbers of 32 bits, little-endian."""

    cpu: int
    count: int
    pieces: tuple[bytes, ...]

    def calls(self, functions: int) -> Iterator[Calls]:
        """The numbers, a piece at a time. Raises ImageError: they are not as many, or none of so many functions."""
        left = self.count
        for piece in self.pieces:
            wanted = min(left, PIECE)
            try:
                found = np.frombuffer(zstd_content(memoryview(piece), PIECE * _BYTES), "<u4")
            except ValueError as error:
                raise ImageError(f"the calls of CPU {self.cpu} are damaged: {error}") from None
            if len(found) != wanted or (wanted and int(found.max()) >= functions):
                raise ImageError(f"the calls of CPU {self.cpu} are damaged: of other functions, or not as many")
            left -= wanted
            yield found.astype(np.uint32, copy=False)
        if left:
            raise ImageError(f"the calls of CPU {self.cpu} are damaged: {left:,} are missing")


def call_orders(logged: Iterable[Calls], function_of: Calls) -> tuple[CallOrder, ...]:
    """What an engine has logged, by CPU.

    Args:
        logged: blocks from 1 on; with the highest bit set, the CPU that runs from there on.
        function_of: the function that begins with each block, from 0 on; `NOWHERE`: none does.
    """
    packed: defaultdict[int, _Packing] = defaultdict(_Packing)
    cpu = 0
    for part in logged:
        starts = np.flatnonzero(part & np.uint32(_CPU))
        bounds = [-1, *starts.tolist(), len(part)]
        for start, end in pairwise(bounds):
            cpu = cpu if start < 0 else int(part[start]) & _CPU - 1
            calls = function_of[part[start + 1 : end] - np.uint32(1)]
            packed[cpu].add(calls[calls != NOWHERE])
    return tuple(packed[cpu].order(cpu) for cpu in sorted(packed) if packed[cpu].count)


class _Packing:
    """The pieces of one CPU."""

    def __init__(self) -> None:
        self.count = 0
        self._pieces: list[bytes] = []
        self._open: list[Calls] = []
        self._size = 0

    def add(self, calls: Calls) -> None:
        self.count += len(calls)
        self._size += len(calls)
        self._open.append(calls)
        while self._size >= PIECE:
            whole = np.concatenate(self._open)
            self._pieces.append(_frame(whole[:PIECE]))
            self._open, self._size = [whole[PIECE:]], len(whole) - PIECE

    def order(self, cpu: int) -> CallOrder:
        last = (_frame(np.concatenate(self._open)),) if self._size else ()
        return CallOrder(cpu, self.count, (*self._pieces, *last))


def _frame(calls: Calls) -> bytes:
    return zstd_frame(memoryview(calls.astype("<u4").tobytes()))
