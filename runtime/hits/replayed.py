"""The record of a hit, as actions see it that run later."""

from collections.abc import Callable, MutableSequence
from typing import NoReturn

from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame


def _nothing(_firing: Firing) -> None:
    """Replays are called directly, never as the action of an enabling."""


def _no_memory(*_arguments: int) -> NoReturn:
    raise AssertionError("a batched action accesses no memory")


class RecordedFiring(Firing):
    """A hit that was recorded. One object is used for all of them."""

    __slots__ = ("key", "time")

    def __init__(self, regs: MutableSequence[int]) -> None:
        """`regs` will hold the registers that were recorded; others in it mean nothing."""
        frame = TrapFrame(regs, _no_memory, _no_memory, _no_memory)
        super().__init__(frame, Enabling(0, _nothing, lambda _firing, _index: 0, 0))
        self.key = 0  # of the thread
        self.time = 0  # of the machine, in ns


Replay = Callable[[RecordedFiring], None]
