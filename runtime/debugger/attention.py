"""A thread that looks at a socket while the guest runs, and calls when something arrives: once each time."""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress


class Attention:
    """The thread of one debugger. It ends with the process."""

    def __init__(self, call: Callable[[], None]) -> None:
        """`call` is called in the thread."""
        self._call = call
        self._watched: int | None = None
        self._reader, self._writer = os.pipe()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def watch(self, descriptor: int) -> None:
        """The guest goes on: look at this file from now on, up to `rest` or to the call."""
        self._watched = descriptor
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="debugger", daemon=True)
            self._thread.start()
        else:
            os.write(self._writer, b".")

    def rest(self) -> None:
        """Do not look: the guest has stopped."""
        self._watched = None

    def close(self) -> None:
        """End the thread."""
        self._watched, self._is_closed = None, True
        if self._thread is not None:
            os.write(self._writer, b".")
            self._thread.join()
            self._thread = None
        os.close(self._reader)
        os.close(self._writer)

    def _look(self) -> None:
        while not self._is_closed:
            watched = self._watched
            found: list[int] = []
            with suppress(OSError, ValueError):  # the file may be closed meanwhile
                found = select.select([self._reader, *(() if watched is None else (watched,))], [], [])[0]
            if self._reader in found:
                os.read(self._reader, 1 << 10)
            elif watched in found and self._watched == watched:
                self._watched = None
                self._call()
