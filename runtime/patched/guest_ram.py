"""What arming needs of a guest's physical memory, whosever the machine is."""

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class GuestRam(Protocol):
    """Physical memory. Where there is none `load` and `write` raise MachineError."""

    def code(self, address: int, size: int) -> AbstractContextManager[NDArray[np.uint8]]:
        """The bytes of [address, address + size), to be changed: once the context is left the guest executes them."""
        ...

    def has(self, address: int, size: int) -> bool:
        """Whether there is memory at all of [address, address + size)."""
        ...

    def load(self, address: int, size: int) -> int:
        """A little-endian word."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write bytes; code among them is translated anew."""
        ...
