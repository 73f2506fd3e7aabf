"""What a board gives a machine: its exception model, its devices and the state in which it starts."""

from collections.abc import Callable
from typing import Protocol

from kinst.runtime.machine.exception_model import ExceptionModel
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Machine


class Board(Protocol):
    """One machine as code, `kinst.runtime.machine.boards.<name>`, which `boards.registry` finds by its name.

    A board object is made for one machine, which has its CPUs, memory and clock by then, and may keep its devices as
    attributes. Nothing is attached before `start`: a machine that only calls functions has no devices.
    """

    @property
    def exceptions(self) -> ExceptionModel:
        """How this machine's CPUs take exceptions and interrupts; made by the board, since it may need its devices
        (acknowledging the PIC, system registers of the GIC, firmware calls such as PSCI)."""
        ...

    def start(self, image: Loaded) -> None:
        """Make and attach the devices, write boot data (FDT, boot_params, multiboot info) to memory, and set the
        registers of every CPU that starts. The image's segments are already in memory."""
        ...


BoardFactory = Callable[[Machine], Board]
