"""A guest's output -> the last line of its console, as a terminal shows it."""

import re
from typing import Final

_LONGEST: Final = 4096  # bytes that are kept of a line
_ESCAPE: Final = rb"\x1b(?:\[[0-9;?]*(?P<final>[@-~])|[^\[]|\[[0-9;?]*$|$)"
_PIECE: Final = re.compile(_ESCAPE + rb"|(?P<control>[\x00-\x1f\x7f])|(?P<text>[^\x00-\x1f\x7f]+)")
_CARRIAGE_RETURN, _BACKSPACE = b"\r", b"\b"
_ERASES: Final = (b"J", b"K")  # to the end of the screen, and of the line


class ConsoleLine:
    """The line in which the console's cursor is. Of the control sequences of ECMA-48 only those have an effect by which
    line editors erase what they have printed; colours and queries of the terminal have none."""

    def __init__(self) -> None:
        """An empty line."""
        self._shown = bytearray()
        self._column = 0
        self._unfinished = b""  # the beginning of an escape sequence

    @property
    def text(self) -> bytes:
        """Its visible characters."""
        return bytes(self._shown)

    @property
    def state(self) -> tuple[bytes, int, bytes]:
        """All of it, for a snapshot: characters, column, and the beginning of an escape sequence."""
        return bytes(self._shown), self._column, self._unfinished

    def restore(self, state: tuple[bytes, int, bytes]) -> None:
        """Return to what `state` gave."""
        self._shown[:], self._column, self._unfinished = state

    def clear(self) -> None:
        """Begin an empty line."""
        self._shown.clear()
        self._column = 0

    def add(self, data: bytes) -> None:
        """Print more output."""
        _, newline, rest = (self._unfinished + data).rpartition(b"\n")
        self._unfinished = b""
        if newline:
            self.clear()
        for piece in _PIECE.finditer(rest):
            if piece["text"] is not None:
                self._write(piece["text"])
            elif piece["control"] is not None:
                self._control(piece["control"])
            elif piece["final"] in _ERASES:
                del self._shown[self._column :]
            elif piece.end() == len(rest) and piece["final"] is None:
                self._unfinished = piece[0][:_LONGEST]

    def _write(self, text: bytes) -> None:
        self._shown[self._column : self._column + len(text)] = text
        self._column += len(text)
        if len(self._shown) > _LONGEST:
            del self._shown[: _LONGEST // 2]
            self._column = min(self._column, len(self._shown))

    def _control(self, character: bytes) -> None:
        if character == _CARRIAGE_RETURN:
            self._column = 0
        elif character == _BACKSPACE:
            self._column = max(0, self._column - 1)
