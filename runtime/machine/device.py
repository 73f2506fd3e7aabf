"""What a device model is, and what it is given: a clock and interrupt lines. Contracts only."""

from collections.abc import Callable
from typing import Protocol

# An interrupt line, which is called with its new level. Calling it twice with the same level is harmless.
Line = Callable[[bool], None]


class Clock(Protocol):
    """The machine's time. Devices count from it; nothing else in the machine reads the host's clock."""

    def now(self) -> int:
        """Nanoseconds since the machine was switched on."""
        ...


class Device(Protocol):
    """Registers in a window of physical memory (or of I/O ports)."""

    @property
    def size(self) -> int:
        """Bytes of address space that the device answers."""
        ...

    def read(self, offset: int, size: int) -> int:
        """The value of a `size`-byte read at `offset`, unsigned."""
        ...

    def write(self, offset: int, size: int, value: int) -> None:
        """Carry out a `size`-byte write at `offset`."""
        ...


class Timed(Protocol):
    """A device that does something by itself at a certain time, such as raising its line."""

    def deadline(self) -> int | None:
        """When it will act next, in the clock's nanoseconds; None if it has nothing to do."""
        ...

    def advance(self) -> None:
        """Do everything that is due now."""
        ...
