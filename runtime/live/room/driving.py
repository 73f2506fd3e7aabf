"""QEMU's stub, and what is to be done at each stop of its guest -> a guest that is looked after until it is left."""

from typing import Protocol

from kinst.runtime.live.room.debugger import Debugger


class Follows(Protocol):
    """What is done at the stops of one guest, whose breakpoints or watched bytes are set."""

    def at_stop(self) -> None:
        """Do it, and let the guest go on, or leave it. Raises MachineError: it cannot be done, or QEMU is gone."""

    def check(self) -> None:
        """Called at the end. Raises MachineError: something was missed."""


class Driver:
    """Looks after one guest; implements `kinst.runtime.live.guest.Stops`."""

    def __init__(self, debugger: Debugger, follows: Follows) -> None:
        self._debugger, self._follows = debugger, follows

    @property
    def is_done(self) -> bool:
        """Whether the guest is not stopped any more."""
        return self._debugger.has_left

    def poll(self) -> None:
        """Called often. Raises MachineError: see `Follows`."""
        if self._debugger.has_stopped():
            self._follows.at_stop()

    def wait(self, seconds: float) -> bool:
        """Wait until the guest may have stopped; returns whether that is so."""
        return self._debugger.wait(seconds)

    def close(self) -> None:
        """Leave a guest that is at its end."""
        self._debugger.close()

    def check(self) -> None:
        """Called at the end. Raises MachineError: see `Follows`."""
        self._follows.check()
