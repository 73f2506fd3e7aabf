"""An independent count: which instructions a run executed and where control went, by a hook of raw Unicorn.

The hook is a few bytes of host machine code, so that it sees tens of millions of instructions in seconds; on hosts that
there are none for it is the same in Python. It shares nothing with the trap path, and is used on plain images.
"""

import ctypes
import mmap
import platform
import sys
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import unicorn
from numpy.typing import NDArray

from kinst.runtime.tracing.guests.guest import Guest

# State words: address and size of the window; counters, 4 bytes for each byte of it; the instruction before and the
# address behind it; where the next (from, to) pair goes, and the end of that space.
_START, _SIZE, _COUNTERS, _BEFORE, _BEHIND, _NEXT, _LIMIT = range(7)
_PAIR: Final = 16
_PART: Final = _PAIR << 20
_X86_64: Final = bytes.fromhex(
    "4889f0"  # mov rax, rsi             ; callback(uc, address, size, state)
    "483b4120"  # cmp rax, [rcx + 32]
    "741d"  # je counted                 ; it follows the one before
    "4c8b4128"  # mov r8, [rcx + 40]
    "4c3b4130"  # cmp r8, [rcx + 48]
    "7313"  # jae counted
    "4c8b4918"  # mov r9, [rcx + 24]
    "4d8908"  # mov [r8], r9
    "49894008"  # mov [r8 + 8], rax
    "4983c010"  # add r8, 16
    "4c894128"  # mov [rcx + 40], r8
    "48894118"  # counted: mov [rcx + 24], rax
    "89d2"  # mov edx, edx
    "4801c2"  # add rdx, rax
    "48895120"  # mov [rcx + 32], rdx
    "482b01"  # sub rax, [rcx]
    "483b4108"  # cmp rax, [rcx + 8]
    "7307"  # jae done
    "488b5110"  # mov rdx, [rcx + 16]
    "ff0482"  # inc dword [rdx + rax * 4]
    "c3"  # done: ret
)
_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Window:
    """Addresses that are counted."""

    start: int
    size: int


class Trace:
    """Counts of executed instructions in windows, and every step that did not go to the instruction behind."""

    def __init__(self, guest: Guest, windows: tuple[Window, ...], steps: int = 1 << 25) -> None:
        """Hook the guest's engine; nothing may run before."""
        self._steps = _space(steps * _PAIR)
        self._summed: tuple[NDArray[np.uint64], NDArray[np.int64]] | None = None
        self._kept: list[object] = []
        self._windows = [(window, _space(window.size * 4)) for window in windows]
        engine = guest.system.engine
        for number, (window, counters) in enumerate(self._windows):
            state = (ctypes.c_uint64 * 7)(window.start, window.size, _address(counters))
            if number == 0:  # one of the hooks notes the steps
                state[_NEXT] = _address(self._steps)
                state[_LIMIT] = state[_NEXT] + steps * _PAIR
                self._state = state
            self._hook(engine.ql.uc, state)

    def _hook(self, uc: unicorn.Uc, state: Any) -> None:
        handle = ctypes.c_size_t()
        status = unicorn.unicorn_py3.unicorn.uclib.uc_hook_add(
            uc._uch,
            ctypes.byref(handle),
            unicorn.UC_HOOK_CODE,
            ctypes.cast(self._code(state), ctypes.c_void_p),
            ctypes.cast(ctypes.addressof(state), ctypes.c_void_p),
            ctypes.c_uint64(1),
            ctypes.c_uint64(0),
        )
        assert status == unicorn.UC_ERR_OK
        self._kept.append(state)

    def _code(self, state: Any) -> Any:
        if sys.platform == "linux" and platform.machine() == "x86_64":
            memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            memory[: len(_X86_64)] = _X86_64
            self._kept.append(memory)
            return ctypes.c_void_p(_address(memory))
        function = _HOOK(_in_python(state))
        self._kept.append(function)
        return function

    def counts(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How often the instruction at each address was executed; 0 outside the windows."""
        found = np.zeros(len(addresses), np.int64)
        for window, counters in self._windows:
            offsets = addresses - np.uint64(window.start)
            inside = offsets < np.uint64(window.size)
            found[inside] = np.frombuffer(counters, np.uint32)[offsets[inside].astype(np.int64)]
        return found

    def steps(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """(from, to) of the steps that did not go to the instruction behind, each once, and how often. After the run:
        the millions of single steps are given up for that."""
        if self._summed is None:
            end = self._state[_NEXT] - _address(self._steps)
            assert end < len(self._steps) - _PAIR, "make room for more steps"
            self._summed = _sum(self._steps, end)
            self._steps = _space(1)
            self._state[_NEXT] = self._state[_LIMIT] = 0
        return self._summed


def _sum(steps: mmap.mmap, end: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A part at a time, since sorting takes several times the memory."""
    found = [_counted(np.frombuffer(steps[at : min(at + _PART, end)], np.uint64)) for at in range(0, end, _PART)]
    pairs = np.concatenate([np.empty((0, 2), np.uint64), *(pairs for pairs, _ in found)])
    each = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in found)])
    first, row = np.unique(_keys(pairs), return_index=True, return_inverse=True)[1:]
    return pairs[first], np.bincount(row, each, len(first)).astype(np.int64)


def _counted(values: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    pairs = values.reshape(-1, 2)
    _, first, counts = np.unique(_keys(pairs), return_index=True, return_counts=True)
    return pairs[first], counts


def _keys(pairs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The lower halves are enough to tell a kernel's addresses apart, and sorted much faster."""
    low = pairs & np.uint64(0xFFFF_FFFF)
    return low[:, 0] << np.uint64(32) | low[:, 1]


def _space(size: int) -> mmap.mmap:
    """Zeroed memory; pages cost nothing until they are used."""
    return mmap.mmap(-1, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _in_python(state: Any) -> Any:
    def callback(_uc: int, address: int, size: int, _data: int) -> None:
        if address != state[_BEHIND] and state[_NEXT] < state[_LIMIT]:
            pair = (ctypes.c_uint64 * 2).from_address(state[_NEXT])
            pair[0], pair[1] = state[_BEFORE], address
            state[_NEXT] += _PAIR
        state[_BEFORE], state[_BEHIND] = address, address + size
        offset = address - state[_START]
        if 0 <= offset < state[_SIZE]:
            ctypes.c_uint32.from_address(state[_COUNTERS] + 4 * offset).value += 1

    return callback
