"""What arming needs from a guest's physical memory, on our machines and on others."""

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class GuestRam(Protocol):
    """Physical memory. Where there is none, `load` and `write` raise MachineError."""

    def code(self, address: int, size: int) -> AbstractContextManager[NDArray[np.uint8]]:
        """The bytes of [address, address + size), which may be changed. When the context is left, the guest executes
        them."""
        ...

    def has(self, address: int, size: int) -> bool:
        """Whether there is memory at each address of [address, address + size)."""
        ...

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of `size` bytes."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write bytes. Code among them is translated again."""
        ...
