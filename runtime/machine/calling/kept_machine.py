"""A machine after a call -> the machine as it was, so that each call begins with the same state.

One that was loaded for calls has no devices, so what a function can change there is memory, the CPU's state, the time,
and registers that the exception model keeps. Everything else of a machine is changed only by what delivers exceptions,
which does not happen there: the first exception ends a call. `live_machine` has the other.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from kinst.runtime.machine.calling.call_memory import CallMemory
from kinst.runtime.machine.calling.function_call import Handler, nothing_handles, set_c_registers
from kinst.runtime.machine.calling.places import OWN_STACK, CallPlace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.system import System


class CallMachine(Protocol):
    """A machine in which each call begins with the same state."""

    @property
    def place(self) -> CallPlace:
        """What calls use of its memory."""
        ...

    @property
    def handler(self) -> Handler:
        """What events mean to a call."""
        ...

    def call(self) -> "AbstractContextManager[None]":
        """Prepare and run one call in this context. Its effects are undone at the end, even if it fails."""
        ...


class KeptMachine:
    """A machine into which an image was loaded for calls; implements `CallMachine`."""

    place = OWN_STACK
    handler = staticmethod(nothing_handles)

    def __init__(self, system: "System", loaded: "Loaded") -> None:
        """Every call will begin with the present state. Breakpoints are in memory already."""
        self._system = system
        set_c_registers(system, loaded)
        self._memory = CallMemory(system)
        self._registers = system.engine.states.save()

    @contextmanager
    def call(self) -> Iterator[None]:
        """See `CallMachine`."""
        system = self._system
        system.trap.fired.clear()  # a call that failed may have been in a trampoline
        system.engine.states.restore(self._registers)
        system.exceptions.forget_registers()
        system.clock.restart()
        try:
            yield
        finally:
            self._memory.undo()
