"""The guest's console and records that share a stream -> lines that are not interleaved.

A line of the console often begins long before it ends: a prompt, the input after it, dots of progress.
"""

import shutil
from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.console_line import ConsoleLine

_LONGEST: Final = 1 << 16  # bytes of a line that wait for its end
_NEWLINE: Final = ord("\n")
_Write = Callable[[bytes], None]


class WholeLines:
    """For a file or a pipe: a line is written when it is complete, and records before or after it. A very long one is
    written in pieces."""

    def __init__(self, write: _Write) -> None:
        self._write = write
        self._begun = bytearray()
        self._is_torn = False  # whether a part of the line has been written

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
    """How many bytes of what a guest printed to show now: whole lines, or all of a very long one."""
    end = text.rfind(b"\n") + 1
    return end if end or len(text) <= _LONGEST else len(text)


class LiveLines:
    """For a terminal: everything is written at once. The line that the guest has begun is erased before records are
    printed, and written again below them."""

    def __init__(self, write: _Write) -> None:
        self._write = write
        self._line = ConsoleLine()
        self._is_hidden = False

    def show(self, data: bytes) -> None:
        """The guest printed something."""
        self.unhide()
        self._line.add(data)
        self._write(data)

    def hide(self) -> None:
        """Something else is about to be printed. A line that is wider than the terminal cannot be erased by a carriage
        return, and is ended instead."""
        columns = len(self._line.text.decode(errors="replace"))
        if columns and not self._is_hidden:
            self._is_hidden = True
            fits = columns < shutil.get_terminal_size().columns
            self._write(b"\r%*s\r" % (columns, b"") if fits else b"\n")

    def unhide(self) -> None:
        """Nothing else will be printed for the moment."""
        if self._is_hidden:
            self._is_hidden = False
            self._write(self._line.text)

    def finish(self) -> None:
        """End the line that the guest has begun."""
        if self._line.text and not self._is_hidden:
            self._write(b"\n")
        self._line.clear()
        self._is_hidden = False
