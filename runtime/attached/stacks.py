"""Stacks of a program that Qiling runs: it is the traced image and the user at once."""

from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.stacks import MachineStacks


class AttachedStacks(MachineStacks):
    """ustack() is stack(), and ucaller is caller."""

    def user_stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """As `stack`."""
        return self.stack(firing, frames)

    def user_caller(self, firing: Firing) -> int:
        """As `caller`."""
        return self.caller(firing)
