"""Where no guest runs there are no stacks and no symbols: the answers that clauses get."""

from kinst.runtime.trap.trap import Firing


class NoStacks:
    """See `kinst.runtime.clauses.environment.Stacks`."""

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """Empty."""
        return ()

    def user_stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """Empty."""
        return ()

    def depth(self, firing: Firing) -> int:
        """None."""
        return 0

    def caller(self, firing: Firing) -> int:
        """Nobody."""
        return 0

    def user_caller(self, firing: Firing) -> int:
        """Nobody."""
        return 0


class NoSymbols:
    """See `kinst.runtime.clauses.environment.Symbols`."""

    def object_start(self, address: int, kind: str) -> int:
        """The address itself."""
        return address

    def describe(self, address: int, kind: str) -> str:
        """The address."""
        return f"{address:#x}"
