"""Unicorn's own state -> the exact address of a fault; the callback for a missed translation gets only its page."""

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Final

# An address at which a fetch always fails, so that a fault's address can be recognised in Unicorn's state.
CANARY: Final = 0x5AA5_1234_5678_9AB0
_SEARCHED: Final = 4096
_PAGE: Final = 1 << 12


def exact_address(handle: int) -> Callable[[int], int]:
    """After a fetch from `CANARY` failed: what gives the address of a fault, of which any address in its page is known.

    It is in uc_struct.invalid_addr, in the engine that `handle` points to. If it is not found, guests see addresses of
    pages.
    """
    found = ctypes.string_at(handle, _SEARCHED).find(CANARY.to_bytes(8, "little"))
    if found < 0 or found % 8:
        return lambda known: known
    return partial(_exact, ctypes.c_uint64.from_address(handle + found))


def _exact(word: ctypes.c_uint64, known: int) -> int:
    return word.value if word.value & -_PAGE == known & -_PAGE else known
