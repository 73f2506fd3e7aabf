"""A machine that was stopped -> the same machine before each call of a function in it.

The stopped CPU makes the calls: in the kernel's address space, with its tables and registers, on its present stack
below what is there. No interrupt comes and no timer expires during a call, and other CPUs stand still. What a call has
done to memory, CPUs, devices and the time is undone.
"""

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kinst.runtime.machine.calling.call_memory import CallMemory
from kinst.runtime.machine.calling.called_devices import CalledDevices
from kinst.runtime.machine.calling.places import CallPlace, add_call_memory
from kinst.runtime.machine.exception_model import Outcome, Source
from kinst.runtime.paging.walker import PageFault
from kinst.targets.errors import UsageError

if TYPE_CHECKING:
    from kinst.runtime.machine.exception_model import Event
    from kinst.runtime.machine.system import System

_RED_ZONE: Final = 512  # bytes below the stack pointer that stay as they are: amd64's user ABI has 128 of its own


class LiveMachine:
    """A machine that has run; implements `CallMachine`."""

    def __init__(self, system: "System", expected: Container[int], original: Callable[[int], int]) -> None:
        """Every call will begin with the present state. Breakpoints are in memory already.

        Args:
            system: the machine, between two runs.
            expected: link addresses of instructions whose faults the kernel handles itself.
            original: a link address for one of code.

        Raises:
            UsageError: the CPU executes a user program.
            MachineError: something of its state cannot be kept.
        """
        self._system, self._expected, self._original = system, expected, original
        self._cpu = cpu = system.position[0]
        system.show(cpu.number)
        register, mask, wanted = system.arch.user_mode
        name = register if isinstance(register, str) else system.arch.registers[register]
        if system.engine.live.get(name) & mask == wanted:
            raise UsageError("--call: the CPU executes a user program: take the snapshot in the kernel")
        self._devices = CalledDevices(system)
        self._time, self._exit_code = system.clock.now(), system.exit_code
        self._cpus = [(one, one.was_started) for one in system.cpus]
        self._mask_interrupts()
        sp = system.engine.live.get(system.arch.registers[system.arch.stack_pointer])
        self.place = CallPlace(sp - _RED_ZONE)
        system.space.alias(add_call_memory(system.memory, has_stack=False))
        self._memory = CallMemory(system)
        system.engine.states.save_to(cpu.context)
        self._stand_still()
        self._context = system.space.context()
        self._called_back = system.engine.called_back

    def _mask_interrupts(self) -> None:
        mask = self._system.exceptions.interrupt_mask
        if mask is not None:
            name, ones, inverted = mask
            live = self._system.engine.live
            live.set(name, (live.get(name) | ones) & ~inverted)

    @contextmanager
    def call(self) -> Iterator[None]:
        """See `CallMachine`."""
        system = self._system
        with system.timed.held():
            self._begin()
            try:
                yield
            finally:
                has_moved = self._memory.undo()
                if not has_moved and system.space.context() != self._context:
                    system.flush_tlb()

    def _begin(self) -> None:
        """Give the machine its state, but for memory."""
        system = self._system
        if system.engine.called_back != self._called_back:
            self._devices.restore()
            self._called_back = system.engine.called_back
            self._stand_still()
        self._cpu.fired.clear()
        system.clock.set(self._time)
        system.continue_at((self._cpu, None), self._exit_code)

    def _stand_still(self) -> None:
        """Let this CPU run and no other, and no interrupt come: their lines are down."""
        states = self._system.engine.states
        for cpu, was_started in self._cpus:
            cpu.restore(states.registers_of(cpu.context), 0, (cpu is self._cpu, False, was_started))

    def handler(self, event: "Event | PageFault", pc: int) -> str:
        """What an event is, if it ends a call: all but calls of firmware, and faults that the kernel handles itself."""
        exceptions, cpu = self._system.exceptions, self._system.current
        self._called_back = -1  # models change what they keep, and are not asked through the engine
        if isinstance(event, PageFault):
            if self._original(pc) in self._expected and exceptions.page_fault(cpu, event) is Outcome.RESUME:
                return ""
            return f"{event.access.name.lower()} of {event.address:#x}, where nothing is"
        what = exceptions.name(event)
        outcome = exceptions.event(cpu, event)
        is_over = outcome is not Outcome.ANSWERED and not (event.source is Source.HALT and outcome is Outcome.RESUME)
        if outcome is Outcome.WAIT:
            what = "waits for an interrupt, and none comes during a call"
        return what if is_over else ""
