"""The guest's console and records that share a stream -> lines that are not torn.

A console's line often begins long before it ends: a prompt, what is typed at it, dots of progress.
"""

import shutil
from collections.abc import Callable

from kinst.runtime.machine.console_line import ConsoleLine

_Write = Callable[[bytes], None]


class WholeLines:
    """For a file or a pipe: a line is written when it is complete, between the records of that time."""

    def __init__(self, write: _Write) -> None:
        self._write = write
        self._begun = bytearray()

    def show(self, data: bytes) -> None:
        """The guest printed something."""
        self._begun += data
        end = self._begun.rfind(b"\n") + 1
        if end:
            self._write(bytes(self._begun[:end]))
            del self._begun[:end]

    def finish(self) -> None:
        """End the line that the guest has begun."""
        if self._begun:
            self._write(bytes(self._begun) + b"\n")
            self._begun.clear()


class LiveLines:
    """For a terminal: everything is written at once. The line that the guest has begun makes way for records, and comes
    back below them."""

    def __init__(self, write: _Write) -> None:
        self._write = write
        self._line = ConsoleLine()
        self._is_away = False

    def show(self, data: bytes) -> None:
        """The guest printed something."""
        self.come_back()
        self._line.add(data)
        self._write(data)

    def leave(self) -> None:
        """Something else is about to be printed. A line that is wider than the terminal stays where it is."""
        columns = len(self._line.text.decode(errors="replace"))
        if columns and not self._is_away:
            self._is_away = True
            fits = columns < shutil.get_terminal_size().columns
            self._write(b"\r%*s\r" % (columns, b"") if fits else b"\n")

    def come_back(self) -> None:
        """Nothing else will be printed for the moment."""
        if self._is_away:
            self._is_away = False
            self._write(self._line.text)

    def finish(self) -> None:
        """End the line that the guest has begun."""
        if self._line.text and not self._is_away:
            self._write(b"\n")
        self._line.clear()
        self._is_away = False
