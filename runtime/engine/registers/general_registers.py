"""Where the running CPU has its PC -> where it has its general registers, if these are words in the order of the frame.

Unicorn's interface takes 5 to 15 ns for one register, and to copy all of them takes no longer. They are found by
experiment when the engine starts: each is given a value of its own, and those values are searched for before the PC.
"""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Final

from kinst.runtime.engine.registers.cpu_states import CpuStates

_CANARY: Final = 0xC0DE_0000_2468_0000
_REACH: Final = 1 << 14  # bytes before the PC, which has the CPU's cache of 32 KiB before it
_WORD: Final = 8


def general_registers(live_pc: int, states: CpuStates, names: Sequence[str]) -> int:
    """The address of the first of these registers, which the others follow; 0 if they do not lie like that."""
    live, saved = states.live, states.save()
    try:
        marks = range(_CANARY, _CANARY + len(names))
        for name, mark in zip(names, marks, strict=True):
            live.set(name, mark)
        at = ctypes.string_at(live_pc - _REACH, _REACH).find(_bytes(marks))
    finally:
        states.restore(saved)
        states.free(saved)
    # The search may have found a copy. Now that other values are back, the CPU's own words have those.
    found = live_pc - _REACH + at
    is_theirs = at >= 0 and ctypes.string_at(found, _WORD * len(names)) == _bytes(map(live.get, names))
    return found if is_theirs else 0


def _bytes(values: Iterable[int]) -> bytes:
    return b"".join(value.to_bytes(_WORD, "little") for value in values)
