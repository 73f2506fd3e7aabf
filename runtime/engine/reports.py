"""What the engine reports and needs, as numbers: why a run ended, accesses to devices, missed translations."""

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

from kinst.runtime.paging.walker import Access


class Stop(IntEnum):
    """Why a run ended."""

    REQUESTED = 0  # `stop` was called, or the instruction budget is used up
    HALTED = 1  # the CPU halted by itself (hlt, wfi)
    FAULT = 2  # a translation failed: `fault_address`
    UNDEFINED = 3  # an instruction that Unicorn does not know, or riscv64's ebreak
    FAILED = 4  # anything else; `error` says what


class Window(Protocol):
    """A device's window as the engine sees it: offset and size in, value in or out."""

    def read(self, offset: int, size: int) -> int:
        """Read `size` bytes at `offset` from the window's start."""
        ...

    def write(self, offset: int, size: int, value: int) -> None:
        """Write `size` bytes at `offset` from the window's start."""
        ...


TlbFill = Callable[[int, Access], tuple[int, int] | None]  # address -> physical address and permissions; None: fault
