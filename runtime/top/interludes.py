"""A screen beside a guest with the instruction clock -> samples in the middle of a CPU's turn, if turns take long.

A turn is as many instructions, and so takes as long as what probes do in it: seconds, if Python runs at each hit. Turns
must end where they end without a screen. So the engine alone stops, between two blocks of code, and goes on in the same
turn (`System.attach_interlude`).
"""

import threading
from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.system import System

_INTERVAL: Final = 0.25  # seconds


class Interludes:
    """A thread that requests samples while the engine runs."""

    def __init__(self, system: System, look: Callable[[], None]) -> None:
        """`look` is called in the guest's thread, to take a sample."""
        self._system, self._look = system, look
        self._lock = threading.Lock()
        self._is_running = self._is_asked = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="screen", daemon=True)
        system.attach_interlude(self)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _ask(self) -> None:
        while not self._is_over.wait(_INTERVAL):
            with self._lock:
                if self._is_running:
                    self._is_asked = True
                    self._system.engine.stop()

    def begin(self) -> None:
        """See `Interlude`: take a sample, if one was requested."""
        if self._is_asked:
            self._is_asked = False
            self._look()
        with self._lock:
            self._is_running = True

    def ended(self) -> bool:
        """See `Interlude`: whether a sample was requested."""
        with self._lock:
            self._is_running = False
        return self._is_asked
