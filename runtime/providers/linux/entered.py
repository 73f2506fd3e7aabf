"""What a function was called with, for its return: fbt's return has only the result.

The stack pointer tells calls apart: it is at the return what it was at the entry, and no two calls that are under way
have the same, whatever task or CPU they are of.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.runtime.providers.events import Numbers, Place, Values, function
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.trap.trap import Firing

_WORD: Final = 8
_INT: Final = 1 << 32
Left = Callable[[Sequence[int], int], Sequence[int] | None]  # what was kept, the result -> the event's arguments


class Calls:
    """The calls of one function that are under way."""

    def __init__(self, host: ProviderHost, name: str) -> None:
        """None is."""
        self._name = name
        self._sp = host.arch.stack_pointer
        self._popped = (
            _WORD if host.arch.link_register is None else 0
        )  # where a return takes its address from the stack
        self._kept: dict[int, Sequence[int]] = {}

    def places(self, kept: Values, left: Left) -> tuple[Place, Place]:
        """The entry, where `kept` says what to keep (None: nothing), and the return."""

        def enter(at: Numbers) -> None:
            values = kept(at)
            if values is not None:
                self._kept[at.firing.regs[self._sp]] = values

        def leave(at: Numbers) -> Sequence[int] | None:
            values = self._kept.pop(self._frame(at.firing), None)
            return None if values is None else left(values, at(1))

        return function(self._name, enter), function(self._name, leave, "return")

    def _frame(self, firing: Firing) -> int:
        # A tail call has returned by now, to where the function would have.
        return firing.regs[self._sp] - (self._popped if firing.returned else 0)


def as_int(number: int) -> int:
    """A number whose type is int: by all three ABIs the upper half of its register is not part of it."""
    low = number % _INT
    return low - _INT if low >= _INT // 2 else low
