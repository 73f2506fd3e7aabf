"""What a machine's MMU is told, and where -> the root of the tables that its kernel is about to use."""

from collections.abc import Sequence
from typing import Protocol

from kinst.runtime.live.room.tables import Format
from kinst.targets.arch.code_shape import Pattern
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Root:
    """The physical address of a root, and its form. `has_kernel`, `has_identity`: whether these tables translate the
    kernel's link addresses, and addresses as low as its physical ones."""

    address: int
    form: Format
    has_kernel: bool
    has_identity: bool


class Cpu(Protocol):
    """A CPU that has stopped at a load."""

    def register(self, number: int) -> int:
        """The value of a register by its number in gdb's protocol. Raises MachineError."""
        ...

    def named_register(self, name: str) -> int:
        """The value of a register by its name, in small letters. Raises MachineError."""
        ...


class Regime(Protocol):
    """One machine's."""

    @property
    def load(self) -> Pattern:
        """The instruction that gives the MMU a root."""
        ...

    @property
    def hypervisor_load(self) -> Pattern | None:
        """The one that gives a hypervisor's own tables, where there is another for that; `load` is for its guests
        then."""
        ...

    @property
    def enable(self) -> Pattern | None:
        """The one that turns the MMU on, if Linux may do so with roots that it has loaded before; bit 0 of its lowest
        register is set then."""
        ...

    @property
    def is_among_modules(self) -> bool:
        """Whether Linux, if it moves, is in the middle of the region from which it gives modules their memory."""
        ...

    @property
    def step(self) -> int:
        """Instructions begin at multiples of so many bytes."""
        ...

    def root(self, load: int, cpu: Cpu) -> Root | None:
        """The root that the instruction gives, which is passed as a word and at which a CPU has stopped; None:
        translation is off after it. Raises MachineError."""
        ...

    def current(self, cpu: Cpu, *, is_hypervisor: bool) -> Sequence[Root]:
        """The roots that a CPU has loaded already. Raises MachineError."""
        ...

    def start(self, distance: int) -> bytes:
        """Eight bytes of code that continue so many bytes further, a multiple of 2 MiB."""
        ...
