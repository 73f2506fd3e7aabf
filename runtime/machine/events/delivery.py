"""The event or fault that stopped a CPU -> the guest's handler, or an end of the run with the reason.

The PC is moved back to the original code first, so that neither exception models nor guests see trampolines.
"""

from collections.abc import Callable
from typing import Final, Protocol, assert_never

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.address_space import AddressSpace
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.events.progress import Progress
from kinst.runtime.machine.exception_model import Event, ExceptionModel, Outcome, Source
from kinst.runtime.machine.watching.accesses import DeviceAccesses
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.trap import TrapPath
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import GuestError

_UNDEFINED_KEPT: Final = 64


class Stopped(Protocol):
    """The machine whose CPU has stopped."""

    @property
    def arch(self) -> ArchFacts:
        """The facts about its instruction set."""
        ...

    @property
    def engine(self) -> QilingMachine:
        """The engine, which has the CPU's state."""
        ...

    @property
    def exceptions(self) -> ExceptionModel:
        """How its CPUs take events and faults."""
        ...

    @property
    def space(self) -> AddressSpace:
        """The virtual memory of the CPU."""
        ...

    @property
    def trap(self) -> TrapPath:
        """The trap path, which knows the sites and the trampolines."""
        ...

    @property
    def current(self) -> VirtualCpu:
        """The CPU."""
        ...

    @property
    def accesses(self) -> DeviceAccesses:
        """Who listens to accesses of devices."""
        ...

    def instruction(self, address: int) -> bytes:
        """The guest's own code at a virtual address; empty if there is none."""
        ...

    def power_off(self, code: int = 0, end: End = End.POWER_OFF) -> None:
        """End the run."""
        ...

    def yield_cpu(self) -> None:
        """End the CPU's turn."""
        ...


class EventDelivery:
    """Delivers what no probe claims, to the guest or to what handles events in its place (`MachineHooks.event`)."""

    def __init__(self, machine: Stopped, progress: Progress) -> None:
        """No event has happened. `progress` is notified of all."""
        self._machine, self._progress = machine, progress
        self.undefined: dict[int, bytes] = {}  # the first few undefined instructions that the guest executed
        self._instead: Callable[[Event | PageFault, int], None] | None = None

    def begin(self, instead: Callable[[Event | PageFault, int], None] | None) -> None:
        """Begin a run; `instead` handles events and faults, given the PC, in place of the guest."""
        self._instead = instead

    def unclaimed(self, number: int) -> None:
        """Handle an exception, with Unicorn's number, at an address that the trap path does not know. It may be a
        breakpoint that is in the file, whose exception has another number."""
        machine = self._machine
        if number == machine.arch.engine.file_breakpoint and machine.trap.claim(machine.engine.pc()):
            return
        self.event(Event(Source.INTERRUPT, number))

    def event(self, event: Event) -> None:
        """Deliver an event. Raises GuestError: it cannot be delivered."""
        machine = self._machine
        before = machine.engine.pc()
        pc = before - machine.engine.interrupt_bias if event.source is Source.INTERRUPT else before
        machine.engine.blocks.leave(pc, has_begun=event.source is not Source.HALT)
        pc = machine.trap.original(pc)
        if pc != before:
            machine.engine.set_pc(pc)
        if self._instead is not None:
            self._instead(event, pc)
            return
        is_undefined, code = machine.exceptions.is_undefined(event), b""
        if is_undefined and len(self.undefined) < _UNDEFINED_KEPT and pc not in self.undefined:
            code = machine.instruction(pc)
        outcome = machine.exceptions.event(machine.current, event)
        if code and outcome is not Outcome.ANSWERED:  # else the model has executed it
            self.undefined[pc] = code
        self._outcome(outcome, pc, name := machine.exceptions.name(event))
        self._progress.event(pc, machine.engine.pc(), name, is_fault=is_undefined)

    def page_fault(self, fault: PageFault) -> None:
        """Deliver a fault; the PC is in the original code. Raises GuestError: it cannot be delivered."""
        machine = self._machine
        pc = machine.engine.pc()
        if self._instead is not None:
            self._instead(fault, pc)
            return
        machine.accesses.faulted(fault)
        self._outcome(machine.exceptions.page_fault(machine.current, fault), pc, what := str(fault))
        self._progress.fault(pc, machine.engine.pc(), what, fault.address)

    def _outcome(self, outcome: Outcome, pc: int, what: str) -> None:
        machine = self._machine
        match outcome:
            case Outcome.RESUME:
                if self._progress.is_stuck(pc, machine.engine.pc()):
                    raise GuestError(f"{self._described(pc, what)} again and again in its own handler")
            case Outcome.ANSWERED:
                self._progress.answered()
            case Outcome.WAIT:
                machine.current.wait()
                machine.yield_cpu()
            case Outcome.RESET:
                machine.power_off(0, End.RESET)
            case Outcome.WEDGED:
                raise GuestError(f"{self._described(pc, what)}, which cannot be delivered")
            case _:
                assert_never(outcome)

    def _described(self, pc: int, what: str) -> str:
        """The CPU, the place and what happened."""
        machine = self._machine
        where = " where there is no memory" if machine.space.is_nothing_executed(pc) else ""
        return f"CPU {machine.current.number} at {pc:#x}: {what}{where}"
