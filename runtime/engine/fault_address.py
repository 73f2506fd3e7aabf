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
    """After a fetch from `CANARY` failed: a function from any address in the page of a fault to the fault's address.

    That is in uc_struct.invalid_addr, in the engine that `handle` points to. If it is not found, guests see the
    addresses of pages in CR2, FAR_EL1 or stval: demand paging works, and what reports a fault to a program does not.
    """
    found = ctypes.string_at(handle, _SEARCHED).find(CANARY.to_bytes(8, "little"))
    if found < 0 or found % 8:
        return lambda known: known
    return partial(_exact, ctypes.c_uint64.from_address(handle + found))


def _exact(word: ctypes.c_uint64, known: int) -> int:
    # The word keeps the last fault's address. Where it is in another page, this fault did not set it.
    return word.value if word.value & -_PAGE == known & -_PAGE else known
