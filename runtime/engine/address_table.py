"""A set of addresses that machine code looks into: a table by a hash, with what it is asked for at its place or behind
it."""

import ctypes
from collections.abc import Iterable
from typing import Final

import numpy as np

from kinst.runtime.engine.host.fields import HASH
from kinst.runtime.engine.host.marks import HASH_SHIFT, MarkState

_SMALLEST: Final = 1 << 8  # places
_SPARSE: Final = 4  # places for each address, at least, when the table is made
_FULL: Final = 2  # places for each address below which it is made anew
_WORD: Final = (1 << 64) - 1


class AddressTable:
    """The addresses, none of which is 0."""

    def __init__(self, callback: int) -> None:
        """None yet. `callback` is the host's address of what the machine code calls for one of them."""
        self.state = MarkState(0, 0, callback)
        self._addresses: set[int] = set()
        self._make()

    def add(self, addresses: Iterable[int]) -> None:
        """Add these."""
        fresh = set(addresses) - self._addresses
        self._addresses |= fresh
        if len(self._addresses) * _FULL > len(self._places):
            self._make()
        else:
            self._put(fresh)

    def keep(self, addresses: Iterable[int]) -> None:
        """Remove all others than these."""
        self._addresses &= set(addresses)
        self._make()

    def _make(self) -> None:
        size = _SMALLEST
        while size < len(self._addresses) * _SPARSE:
            size *= 2
        self._places = np.zeros(size, np.uint64)
        self._put(self._addresses)
        self.state.table, self.state.mask = self._places.ctypes.data, size - 1

    def _put(self, addresses: Iterable[int]) -> None:
        places, mask = self._places, len(self._places) - 1
        for address in addresses:
            at = (address * HASH & _WORD) >> HASH_SHIFT & mask
            while places[at]:
                at = at + 1 & mask
            places[at] = address

    @property
    def argument(self) -> ctypes.c_void_p:
        """What the machine code is called with."""
        return ctypes.c_void_p(ctypes.addressof(self.state))
