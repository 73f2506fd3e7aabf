"""What a device model is, and what it needs: a clock and interrupt lines. Contracts only."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

# An interrupt line, which is called with its new level. Calling it twice with the same level is harmless.
Line = Callable[[bool], None]


class Clock(Protocol):
    """The machine's time. Devices count from it; nothing else in the machine reads the host's clock."""

    def now(self) -> int:
        """Nanoseconds since the machine was switched on."""
        ...


class Device(Protocol):
    """Registers in a window of physical memory (or of I/O ports).

    A guest may access 1, 2, 4 or 8 bytes, from anywhere in the window and beyond its end. I/O ports are accessed one by
    one, unless the device is attached as a whole.
    """

    @property
    def size(self) -> int:
        """Bytes of address space that the device answers."""
        ...

    def read(self, offset: int, size: int) -> int:
        """The value of a `size`-byte read at `offset`, unsigned. Nothing is raised, whatever the guest does: without a
        register there it is 0, or what the manual says."""
        ...

    def write(self, offset: int, size: int, value: int) -> None:
        """Perform a `size`-byte write at `offset`; `value` has no more bytes than that."""
        ...


@runtime_checkable
class Timed(Protocol):
    """A device that acts by itself at certain times, such as by raising its line. It is attached twice: as a `Timed`
    one and as a `Device`."""

    def deadline(self) -> int | None:
        """When it will act next, in the clock's nanoseconds; None if it has nothing to do. Asked before each turn of a
        CPU and after each write to the device: cheap, and without effect."""
        ...

    def advance(self) -> None:
        """Do everything that is due now. Then the deadline is later or None, or turns of CPUs last a nanosecond."""
        ...
