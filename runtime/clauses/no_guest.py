"""What clauses get where no guest runs: no stacks and no symbols."""

from kinst.runtime.trap.trap import Firing


class NoStacks:
    """Implements `kinst.runtime.clauses.environment.Stacks`: every stack is empty."""

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """No addresses."""
        return ()

    def user_stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """No addresses."""
        return ()

    def depth(self, firing: Firing) -> int:
        """0: there are no frames."""
        return 0

    def caller(self, firing: Firing) -> int:
        """0: the caller is unknown."""
        return 0

    def user_caller(self, firing: Firing) -> int:
        """0: the caller is unknown."""
        return 0


class NoSymbols:
    """Implements `kinst.runtime.clauses.environment.Symbols`: no address has a name."""

    def object_start(self, address: int, kind: str) -> int:
        """The address itself."""
        return address

    def describe(self, address: int, kind: str) -> str:
        """The address as 0x and hexadecimal digits."""
        return f"{address:#x}"
