"""What is called while a machine runs: given to each run, and the same until it ends."""

from collections.abc import Callable
from typing import Final, Protocol

from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.exception_model import Event
from kinst.runtime.paging.walker import PageFault
from kinst.targets.values import dataclass


def _unseen(_data: bytes) -> None:
    """Discard the console's output."""


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class MachineHooks:
    """The observers of a run."""

    console: Callable[[bytes], None] = _unseen  # called with the output of the guest's console
    after_turn: Callable[[], None] = _nothing  # between two turns of CPUs
    # Handles events and faults, given the PC, in place of the guest; None: the guest does it.
    event: Callable[[Event | PageFault, int], None] | None = None


NO_HOOKS: Final = MachineHooks()


class Interlude(Protocol):
    """Work between two runs of the engine in the same turn of a CPU; see `System.attach_interlude`."""

    def begin(self) -> None:
        """Called before the engine runs. Code may be changed now."""
        ...

    def ended(self) -> bool:
        """Called after the engine has run. Whether it stopped for this interlude, so that the turn continues."""
        ...


class InterruptWatcher(Protocol):
    """Notified of interrupts; see `System.attach_interrupt_watcher`."""

    def delivered(self, pc: int, sp: int) -> None:
        """The machine has entered the handler of an interrupt of code at `pc` with stack pointer `sp`."""
        ...

    def may_come(self, cpu: VirtualCpu) -> None:
        """Unicorn itself may soon deliver an interrupt to a CPU."""
        ...
