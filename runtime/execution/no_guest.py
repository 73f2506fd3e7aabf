"""Where no guest runs there are no stacks, no symbols and no threads: the answers that clauses get."""

from kinst.runtime.trap import Firing


class NoStacks:
    """See `kinst.runtime.execution.environment.Stacks`."""

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
    """See `kinst.runtime.execution.environment.Symbols`."""

    def object_start(self, address: int, kind: str) -> int:
        """The address itself."""
        return address

    def describe(self, address: int, kind: str) -> str:
        """The address."""
        return f"{address:#x}"


class NoProfile:
    """See `kinst.runtime.execution.environment.GuestProfile`."""

    def thread(self, firing: Firing) -> int:
        """The tracer's own threads, one for BEGIN, END and ERROR and one for the timers of a CPU."""
        return firing.thread

    def integer(self, firing: Firing, name: str) -> int:
        """0: no process, no user."""
        return 0

    def string(self, firing: Firing, name: str) -> bytes:
        """Empty."""
        return b""

    def is_user(self, firing: Firing) -> bool:
        """There are no modes."""
        return False
