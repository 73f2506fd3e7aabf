"""Stacks and symbols for a session without a guest: there are none."""

from collections.abc import Callable

from kinst.runtime.clauses.environment import Stack, SymbolName
from kinst.runtime.trap.trap import Firing


class NoStacks:
    """Implements `Stacks` and `UserStacks` of `kinst.runtime.clauses.environment`: every stack is empty."""

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """No addresses."""
        return ()

    def depth(self, firing: Firing) -> int:
        """0: there are no frames."""
        return 0

    def caller(self, firing: Firing) -> int:
        """0: the caller is unknown."""
        return 0


class NoUserSymbols:
    """Implements `kinst.runtime.clauses.environment.UserSymbols`: no program is known."""

    def __init__(self, start: Callable[[int, str], int] = lambda address, _kind: address) -> None:
        """`start` gives the start of the object that holds an address, for a kind of symbol."""
        self._start = start

    def stack(self, addresses: tuple[int, ...], frames: int, process: int) -> Stack:
        """The addresses as they are: the image's symbols may have their names."""
        return Stack(addresses, frames, is_user=True, process=process)

    def symbol(self, address: int, kind: str, process: int) -> SymbolName:
        """The address, without a name."""
        return SymbolName(kind, self._start(address, kind), process)


class NoSymbols:
    """Implements `kinst.runtime.clauses.environment.Symbols`: no address has a name."""

    def object_start(self, address: int, kind: str) -> int:
        """The address itself."""
        return address

    def describe(self, address: int, kind: str) -> str:
        """The address as 0x and hexadecimal digits."""
        return f"{address:#x}"
