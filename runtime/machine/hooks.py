"""Who is called while a machine runs: given to each run, and the same until it ends."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.exception_model import Event
from kinst.runtime.paging.walker import PageFault


def _unseen(_data: bytes) -> None:
    """Nobody reads the console."""


def _nothing() -> None:
    """Nothing is to be done."""


@dataclass(frozen=True, slots=True)
class MachineHooks:
    """What a run is watched by."""

    console: Callable[[bytes], None] = _unseen  # called with what the guest's console sends
    after_turn: Callable[[], None] = _nothing  # between two turns of CPUs
    # Handles events and faults, given the PC, in place of the guest; None: the guest does it.
    event: Callable[[Event | PageFault, int], None] | None = None


NO_HOOKS: Final = MachineHooks()


class Interlude(Protocol):
    """What is done between two runs of the engine in the same turn of a CPU; see `System.attach_interlude`."""

    def begin(self) -> None:
        """The engine is about to run. Code may be changed now."""
        ...

    def ended(self) -> bool:
        """The engine has run: whether it stopped for this interlude, so that the turn goes on."""
        ...


class InterruptWatcher(Protocol):
    """Is told of interrupts; see `System.attach_interrupt_watcher`."""

    def delivered(self, pc: int, sp: int) -> None:
        """The machine has entered the handler of an interrupt of code at `pc` with stack pointer `sp`."""
        ...

    def may_come(self, cpu: VirtualCpu) -> None:
        """A CPU may take an interrupt soon by itself."""
        ...
