"""What clauses get where no guest runs: no stacks and no symbols."""

from collections.abc import Sequence

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

    def names(self, addresses: Sequence[int]) -> tuple[str, ...]:
        """No names: the image's symbols may have them."""
        return ()

    def name(self, address: int, kind: str) -> tuple[int, str]:
        """The address, without a name."""
        return address, ""


class NoSymbols:
    """Implements `kinst.runtime.clauses.environment.Symbols`: no address has a name."""

    def object_start(self, address: int, kind: str) -> int:
        """The address itself."""
        return address

    def describe(self, address: int, kind: str) -> str:
        """The address as 0x and hexadecimal digits."""
        return f"{address:#x}"
