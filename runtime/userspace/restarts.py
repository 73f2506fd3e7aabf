"""Instructions that are begun again: a process that touches a page which is not there yet comes back to the instruction
when the kernel has brought it. To a probe there that is one hit, as it is to a breakpoint whose instruction is executed
out of line.
"""

from collections.abc import Sequence
from typing import Final

_LONGEST: Final = 16  # bytes of an instruction: a fault at an address in it is one of its own bytes


class Restarts:
    """What was begun and has not ended, by task."""

    def __init__(self) -> None:
        """Nothing was begun."""
        self._last: tuple[int, int, tuple[int, ...]] | None = None  # of the hit before: task, address, registers
        self._faulted: dict[int, tuple[int, tuple[int, ...]]] = {}  # by task

    def begin(self, task: int, address: int, registers: Sequence[int]) -> None:
        """A task executes a probed instruction, with these registers."""
        self._last = task, address, tuple(registers)
        self._faulted.pop(task, None)

    def faulted(self, pc: int, address: int) -> None:
        """The CPU takes a fault of an access to an address, by the instruction at `pc`, the last of all instructions
        that it has begun."""
        last = self._last
        if last is not None and last[1] == pc and not pc <= address < pc + _LONGEST:
            self._faulted[last[0]] = last[1:]
        self._last = None

    def is_again(self, task: int, address: int, registers: Sequence[int]) -> bool:
        """Whether a task does no more than to begin an instruction again."""
        return self._faulted.pop(task, None) == (address, tuple(registers))
