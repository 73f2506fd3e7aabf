"""Commands from the screen's thread -> executed in the guest's thread, between two turns of a CPU.

It sits at the guest's serial line, where the machine looks whenever no CPU runs, even while all of them sleep.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_DRAINED: Final = 4096  # bytes of the pipe that are read at once


class Door:
    """Implements `kinst.runtime.machine.serial_line.Source`. All but the methods of `Source` may be called in any
    thread."""

    def __init__(
        self,
        between: Callable[[], None],
        end: Callable[[], None],
        stands: Callable[[], None],
        stood: Callable[[int], None],
    ) -> None:
        """No command is pending yet.

        Args:
            between: called in the guest's thread between two turns.
            end: called there to end the run.
            stands: called before each pause.
            stood: called after it with its length in ns.
        """
        self._between, self._end, self._stands, self._stood = between, end, stands, stood
        self._reader, self._writer = os.pipe()  # what wakes a machine that sleeps
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._typed = bytearray()
        self._lock = threading.Lock()
        self._may_run = threading.Event()
        self._may_run.set()
        self._is_to_end = False

    def close(self) -> None:
        """Close it: there are no more commands."""
        os.close(self._reader)
        os.close(self._writer)

    # -- the screen ---------------------------------------------------------------------------------------------------

    def type(self, data: bytes) -> None:
        """Press keys on the guest's console."""
        with self._lock:
            self._typed += data
        self._wake()

    @property
    def is_paused(self) -> bool:
        """Whether the guest is paused."""
        return not self._may_run.is_set()

    def pause(self) -> None:
        """Pause the guest and its time."""
        self._may_run.clear()
        self._wake()

    def go_on(self) -> None:
        """Let it continue."""
        self._may_run.set()

    def end(self) -> None:
        """End the run."""
        self._is_to_end = True
        self._may_run.set()
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # it is full: the machine is as good as awake
            os.write(self._writer, b".")

    # -- the guest ----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """See `Source`."""
        self._between()
        if not self._may_run.is_set():
            self._stands()
            start = time.monotonic_ns()
            self._may_run.wait()
            self._stood(time.monotonic_ns() - start)
        if self._is_to_end:
            self._end()

    def take(self, size: int) -> bytes:
        """See `Source`."""
        with suppress(BlockingIOError):
            os.read(self._reader, _DRAINED)
        with self._lock:
            taken = bytes(self._typed[:size])
            del self._typed[:size]
        return taken

    def descriptor(self, *, is_awaited: bool) -> int | None:
        """See `Source`: a command may come at any time."""
        return self._reader
