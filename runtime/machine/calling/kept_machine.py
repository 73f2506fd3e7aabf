"""A machine after a call -> the machine as it was loaded, so that each call begins with the same state.

No devices are attached in a call (`call`), so what a function can change is memory, the CPU's state, the time, and
registers that the exception model keeps. Everything else of a machine is changed only by what delivers exceptions,
which does not happen here: the first exception ends a call.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kinst.runtime.machine.calling.call_memory import CallMemory
from kinst.runtime.machine.system import System


class KeptMachine:
    """A machine into which an image was loaded for calls."""

    def __init__(self, system: System) -> None:
        """Every call will begin with the present state. Breakpoints are in memory already."""
        self._system = system
        self._memory = CallMemory(system)
        self._registers = system.engine.states.save()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Prepare and run one call in this context. Its effects are undone at the end, even if it fails."""
        system = self._system
        system.trap.fired.clear()  # a call that failed may have been in a trampoline
        system.engine.states.restore(self._registers)
        system.exceptions.forget_registers()
        system.clock.restart()
        try:
            yield
        finally:
            self._memory.undo()
