"""Runs that end before an instruction at a chosen virtual address, in whatever block of code it is.

Unicorn calls a hook at each of these addresses, which is compiled into the code there: code that was translated before
is translated again when an address is added. Nothing is written into the guest's memory. Instructions must be counted:
what a block has left is given back, so that the run goes on there as if it had never ended.
"""

import ctypes
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from unicorn.unicorn_const import UC_HOOK_CODE

from kinst.runtime.engine.counting import Counting
from kinst.runtime.engine.emulator import Emulator

_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class Stoppable(Emulator, Protocol):
    """What the engine does for it."""

    def fail(self, error: BaseException) -> None:
        """Stop, and let the run raise `error`."""
        ...


class AddressStops:
    """The addresses of one engine."""

    def __init__(self, engine: Stoppable, counting: Counting, is_wanted: Callable[[int], bool]) -> None:
        """None yet. `is_wanted` is called with an address each time that it is reached: whether the run ends there."""
        self._engine, self._counting, self._is_wanted = engine, counting, is_wanted
        self._callback = _HOOK(self._reached)
        self._function = counting.alone(self._callback)
        self._unhook: dict[int, Callable[[], None]] = {}

    def set(self, addresses: Iterable[int]) -> None:
        """Have these addresses and no others. Between two runs."""
        wanted = set(addresses)
        for address in self._unhook.keys() - wanted:
            self._unhook.pop(address)()
        self.add(wanted)

    def add(self, addresses: Iterable[int]) -> None:
        """Have these addresses as well. Between two runs."""
        fresh = sorted(set(addresses) - self._unhook.keys())
        for address in fresh:
            at = address, address
            handle = self._engine.hook(UC_HOOK_CODE, self._function, ctypes.c_void_p(), bounds=at)
            self._unhook[address] = partial(self._engine.unhook, handle)
        if fresh:
            self._engine.forget_all_code()

    def _reached(self, _uc: int, address: int, _size: int, _data: int) -> None:
        try:
            if self._is_wanted(address):
                self._counting.end_now()
        except BaseException as error:  # it cannot be raised through ctypes, which would print it and continue
            self._engine.fail(error)
