"""Virtual addresses -> a call before the instruction at one of them, in whatever address space and block it is.

The engine compiles the call into the code that it translates, so that nothing is written into the guest's memory and
other code costs nothing. That is decided when code is translated: an address must be added before code runs there, or
all code be translated again. Addresses may be added and removed while a callback runs: a hook is moved by its bounds,
which the engine compares at each call, and never removed.

The engine goes through all hooks for each instruction that it translates. So few addresses have a hook each; of many,
those that are near each other share one, which is called for all that is between them, too: some nanoseconds each, in
machine code of the host that looks the address up. Where there is no such code, each has its own.
"""

import ctypes
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from unicorn.unicorn_const import UC_HOOK_CODE

from kinst.runtime.engine.address_stops import Stoppable
from kinst.runtime.engine.address_table import AddressTable
from kinst.runtime.engine.counting import Counting
from kinst.runtime.engine.host.marks import MARKS

_CODE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_NOWHERE: Final = ((1 << 63) + 1,) * 2  # as in `kinst.runtime.engine.counting`
_BOUNDS: Final = 24  # where in Unicorn's struct hook they are, in bytes
_OWN: Final = 64  # addresses that have a hook each
_SHARED: Final = 8  # hooks for more than these

Range = tuple[int, int]  # first and last address


class CodeWatch:
    """The watched addresses of one engine."""

    def __init__(self, engine: Stoppable, counting: Counting, reached: Callable[[int], None]) -> None:
        """None yet. `reached` is called with an address before the instruction there is executed."""
        self._engine, self._reached = engine, reached
        self._callback = _CODE(self._called)
        function = counting.alone(self._callback)
        self._table = AddressTable(function.value or 0)
        self._code = MARKS.function()
        self._function = function if self._code is None else self._code.address
        self._addresses: set[int] = set()
        self._hooks: dict[Range, ctypes.Array[ctypes.c_uint64]] = {}  # by what they are at, the bounds
        self._free: list[ctypes.Array[ctypes.c_uint64]] = []

    @property
    def addresses(self) -> frozenset[int]:
        """Those that are watched."""
        return frozenset(self._addresses)

    def add(self, addresses: Iterable[int]) -> None:
        """Watch these, too."""
        fresh = set(addresses) - self._addresses
        if fresh:
            self._addresses |= fresh
            self._table.add(fresh)
            self._place()

    def keep(self, addresses: Iterable[int]) -> None:
        """Watch no others than these."""
        kept = self._addresses.intersection(addresses)
        if len(kept) < len(self._addresses):
            self._addresses = kept
            self._table.keep(kept)
            self._place()

    def _place(self) -> None:
        """Put the hooks where they are wanted: each address is in one of them."""
        most = len(self._addresses) if self._code is None or len(self._addresses) <= _OWN else _SHARED
        wanted = ranges(self._addresses, most)
        for one in self._hooks.keys() - wanted:
            bounds = self._hooks.pop(one)
            bounds[:] = [*_NOWHERE]
            self._free.append(bounds)
        for one in wanted - self._hooks.keys():
            bounds = self._free.pop() if self._free else self._hook()
            bounds[:] = [*one]
            self._hooks[one] = bounds

    def _hook(self) -> "ctypes.Array[ctypes.c_uint64]":
        handle = self._engine.hook(UC_HOOK_CODE, self._function, self._table.argument, bounds=_NOWHERE)
        bounds = (ctypes.c_uint64 * 2).from_address((handle.value or 0) + _BOUNDS)
        if tuple(bounds) != _NOWHERE:
            raise LookupError("this Unicorn keeps the bounds of hooks elsewhere")
        return bounds

    def _called(self, _uc: int, address: int, _size: int, _data: int) -> None:
        if address not in self._addresses:
            return
        try:
            self._reached(address)
        except BaseException as error:  # it cannot be raised through ctypes, which would print it and continue
            self._engine.fail(error)


def ranges(addresses: Iterable[int], most: int) -> set[Range]:
    """At most so many ranges that have all addresses, with as little between these as there can be."""
    places = np.array(sorted(addresses), np.uint64)
    if not len(places):
        return set()
    gaps = np.sort(np.argsort(np.diff(places), kind="stable")[::-1][: most - 1])
    starts, ends = places[np.concatenate([[0], gaps + 1])], places[np.concatenate([gaps, [len(places) - 1]])]
    return set(zip(starts.tolist(), ends.tolist(), strict=True))
