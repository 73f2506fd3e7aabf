"""The guest's console and records that share a stream -> lines that are not torn.

A console's line often begins long before it ends: a prompt, what is typed at it, dots of progress.
"""

import shutil
from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.console_line import ConsoleLine

_LONGEST: Final = 1 << 16  # bytes of a line that wait for its end
_NEWLINE: Final = ord("\n")
_Write = Callable[[bytes], None]


class WholeLines:
    """For a file or a pipe: a line is written when it is complete, between the records of that time. A very long one is
    written as it comes."""

    def __init__(self, write: _Write) -> None:
        self._write = write
        self._begun = bytearray()
        self._is_torn = False  # some of the line is written

    def show(self, data: bytes) -> None:
        """The guest printed something."""
        self._begun += data
        end = whole(self._begun)
        if end:
            self._is_torn = self._begun[end - 1] != _NEWLINE
            self._write(bytes(self._begun[:end]))
            del self._begun[:end]

    def finish(self) -> None:
        """End the line that the guest has begun."""
        if self._begun or self._is_torn:
            self._write(bytes(self._begun) + b"\n")
            self._begun.clear()
            self._is_torn = False


def whole(text: bytearray) -> int:
    """How many bytes of what a guest printed are to be shown now: those of whole lines, or all of a very long one."""
    end = text.rfind(b"\n") + 1
    return end if end or len(text) <= _LONGEST else len(text)


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
