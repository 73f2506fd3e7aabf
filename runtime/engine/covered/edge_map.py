"""Which blocks of code came after which, in one run or several: what guides a fuzzer, at 2 ns a block."""

import ctypes
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from unicorn.unicorn_const import UC_HOOK_BLOCK

from kinst.runtime.engine.emulator import Emulator
from kinst.runtime.engine.host.edges import EDGE_HOOK, EDGES, EdgeState
from kinst.runtime.engine.host.fields import HASH, log2

_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_SHIFT: Final = 64 - log2(EDGES)
_MOST: Final = 255
_WORD: Final = (1 << 64) - 1


class Covered(Protocol):
    """What a fuzzer wants to know of a call, whoever finds it out."""

    def begin(self) -> None:
        """Forget what was executed."""
        ...

    def taken(self) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
        """What was executed since then: places, and eight counts of a byte at each, as one word."""
        ...


class EdgeMap:
    """The blocks of one engine, from now on; implements `Covered`."""

    def __init__(self, engine: Emulator) -> None:
        """Between two runs. What was translated before is translated again."""
        self._counts = np.zeros(EDGES, np.uint8)
        self._words = self._counts.view(np.uint64)
        self._state = EdgeState(self._counts.ctypes.data, 0)
        self._code = EDGE_HOOK.function()
        self._callback = _HOOK(self._in_python)
        function = ctypes.cast(self._callback, ctypes.c_void_p) if self._code is None else self._code.address
        engine.hook(UC_HOOK_BLOCK, function, ctypes.c_void_p(ctypes.addressof(self._state)))
        engine.forget_all_code()

    def _in_python(self, _uc: int, address: int, _size: int, _data: int) -> None:
        """What the machine code does."""
        half = (address * HASH & _WORD) >> _SHIFT
        place = half ^ self._state.before
        self._state.before = half >> 1
        self._counts[place] += self._counts[place] < _MOST

    def begin(self) -> None:
        """See `Covered`."""
        self._words[np.flatnonzero(self._words)] = 0
        self._state.before = 0

    def taken(self) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
        """See `Covered`."""
        places = np.flatnonzero(self._words)
        return places, self._words[places]
