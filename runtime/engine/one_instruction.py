"""A run of one instruction, whatever code was translated before.

A machine that counts instructions grants one. Otherwise all code is translated again with a hook that counts, for this
run only. Unicorn's own count (uc_emu_start's last argument) is not used: it ends runs only in code that is translated
after it was asked for, and removes its hook at the start of the next run, where it looks for the code that had it with
the translations of that moment. A fault there is reported as that run's: Linux panicked in handle_softirqs.
"""

import ctypes
from collections.abc import Callable

from kinst.runtime.engine.native_hooks import InstructionCounter

Hook = tuple[ctypes.c_void_p, ctypes.c_void_p]
Unhook = Callable[[], None]


class OneInstruction:
    """What the next run is limited to."""

    def __init__(self, stop: int, add: Callable[[Hook], Unhook]) -> None:
        """`stop` is the address of uc_emu_stop. `add` has all code translated again, with a hook at every instruction,
        until what it returns is called."""
        self._counter = InstructionCounter(stop)
        self._add = add
        self._hook: Hook | None = None
        self._unhook: Unhook | None = None
        self._after: Callable[[], None] | None = None

    @property
    def is_next(self) -> bool:
        """Whether the next run is of one instruction."""
        return self._after is not None

    def ask(self, after: Callable[[], None]) -> None:
        """Let the next run execute one instruction, and then call `after`."""
        self._after = after

    def set_trampolines(self, address: int, size: int, slot_size: int) -> None:
        """Of what is in [address, address + size), count only the first instruction of a slot."""
        self._counter.set_slots(address, size, slot_size)

    def begin(self, *, is_granted: bool) -> None:
        """A run begins. If it is of one instruction, count unless that `is_granted`."""
        # Not at the end of the run that had the hook: to unhook translates addresses, and would lose that run's fault.
        if self._unhook is not None:
            self._unhook()
            self._unhook = None
        if self._after is not None and not is_granted:
            if self._hook is None:
                self._hook = self._counter.callback()
            self._counter.grant(1)
            self._unhook = self._add(self._hook)

    def end(self) -> bool:
        """The run has ended. Whether that was because it had executed its instruction."""
        if self._after is None:
            return False
        has_stopped = self._unhook is not None and self._counter.has_stopped
        # Without limit: code that Unicorn cannot find any more keeps the hook, and must only become slower.
        self._counter.grant()
        after, self._after = self._after, None
        after()
        return has_stopped
