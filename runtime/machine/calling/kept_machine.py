"""What calls change in a machine -> the machine as it was loaded, so that the next call finds what the first one found.

No devices are attached in a call (`call`), so what a function can change is memory, the CPU's state, the time, and
registers that the exception model keeps. Everything else of a machine is changed only by what delivers exceptions,
which a call does not come to: its first exception ends it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kinst.runtime.machine.calling.call_memory import CallMemory
from kinst.runtime.machine.system import System


class KeptMachine:
    """A machine that an image was loaded into for calls."""

    def __init__(self, system: System) -> None:
        """What it is now is what every call finds. Breakpoints are in memory already."""
        self._system = system
        self._memory = CallMemory(system)
        self._registers = system.engine.states.save()

    @contextmanager
    def call(self) -> Iterator[None]:
        """One call is prepared and runs in this context. What it has done is undone at the end, whatever that is."""
        system = self._system
        system.trap.fired.clear()  # a call that failed may have been in a trampoline
        system.engine.states.restore(self._registers)
        system.exceptions.forget_registers()
        system.clock.restart()
        try:
            yield
        finally:
            self._memory.undo()
