"""Virtual addresses -> a call before the instruction at one of them, in whatever address space and block it is.

The engine compiles the call into the code that it translates, so that nothing is written into the guest's memory and
other code costs nothing. That is decided when code is translated: an address must be added before code runs there, or
all code be translated again. Addresses may be added and removed while a callback runs: a hook is moved by its bounds,
which the engine compares at each call, and never removed.
"""

import ctypes
from collections.abc import Callable, Iterable
from typing import Final

from unicorn.unicorn_const import UC_HOOK_CODE

from kinst.runtime.engine.address_stops import Stoppable
from kinst.runtime.engine.counting import Counting

_CODE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_NOWHERE: Final = ((1 << 63) + 1,) * 2  # as in `kinst.runtime.engine.counting`
_BOUNDS: Final = 24  # where in Unicorn's struct hook they are, in bytes


class CodeWatch:
    """The watched addresses of one engine."""

    def __init__(self, engine: Stoppable, counting: Counting, reached: Callable[[int], None]) -> None:
        """None yet. `reached` is called with an address before the instruction there is executed."""
        self._engine, self._reached = engine, reached
        self._callback = _CODE(self._called)
        self._function = counting.alone(self._callback)
        self._hooks: dict[int, ctypes.Array[ctypes.c_uint64]] = {}  # by address, the bounds
        self._free: list[ctypes.Array[ctypes.c_uint64]] = []

    @property
    def addresses(self) -> frozenset[int]:
        """Those that are watched."""
        return frozenset(self._hooks)

    def add(self, addresses: Iterable[int]) -> None:
        """Watch these, too."""
        for address in set(addresses) - self._hooks.keys():
            bounds = self._free.pop() if self._free else self._hook()
            bounds[:] = [address, address]
            self._hooks[address] = bounds

    def keep(self, addresses: Iterable[int]) -> None:
        """Watch no others than these."""
        for address in self._hooks.keys() - set(addresses):
            bounds = self._hooks.pop(address)
            bounds[:] = [*_NOWHERE]
            self._free.append(bounds)

    def _hook(self) -> "ctypes.Array[ctypes.c_uint64]":
        handle = self._engine.hook(UC_HOOK_CODE, self._function, ctypes.c_void_p(), bounds=_NOWHERE)
        bounds = (ctypes.c_uint64 * 2).from_address((handle.value or 0) + _BOUNDS)
        if tuple(bounds) != _NOWHERE:
            raise LookupError("this Unicorn keeps the bounds of hooks elsewhere")
        return bounds

    def _called(self, _uc: int, address: int, _size: int, _data: int) -> None:
        if address not in self._hooks:
            return
        try:
            self._reached(address)
        except BaseException as error:  # it cannot be raised through ctypes, which would print it and continue
            self._engine.fail(error)
