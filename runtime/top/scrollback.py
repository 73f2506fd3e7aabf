"""Output of a guest or a program, in one thread -> its last lines as a terminal would show them, for another."""

import io
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.console_line import ConsoleLine
from kinst.targets.visible import visible

_KEPT: Final = 5000  # lines
_TAB: Final = 8


class Scrollback:
    """The end of a text. Escape sequences are removed, and backspaces and the like applied."""

    def __init__(self) -> None:
        """Nothing is printed yet."""
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._last = ConsoleLine()
        self.changes = 0  # grows whenever something is printed

    def write(self, data: bytes) -> int:
        """Append output."""
        with self._lock:
            *lines, rest = data.split(b"\n")
            for line in lines:
                self._last.add(line.expandtabs(_TAB))
                self._lines.append(_shown(self._last.text))
                self._last.clear()
            self._last.add(rest.expandtabs(_TAB))
            self.changes += 1
        return len(data)

    def flush(self) -> None:
        """Do nothing: everything is there."""

    def lines(self) -> list[str]:
        """The last lines, including one that is not complete."""
        with self._lock:
            return [*self._lines, _shown(self._last.text)]


def _shown(line: bytes) -> str:
    return visible(line.decode(errors="backslashreplace"))


class Notes(io.StringIO):
    """Messages for stderr, as a stream. While the screen is shown, they are held back."""

    def __init__(self, show: Callable[[str], object]) -> None:
        """`show` prints a text on stderr."""
        super().__init__()
        self._show = show
        self._waiting: list[str] | None = None

    def hold(self) -> None:
        """Hold messages back from now on."""
        self._waiting = []

    def release(self) -> None:
        """Print what was held back, and hold back no more."""
        waiting, self._waiting = self._waiting or [], None
        for text in waiting:
            self._show(text)

    def line(self, line: str) -> None:
        """Print a line of the command."""
        self.write(f"kinst-run: {line}\n")

    def write(self, text: str, /) -> int:
        """Print, now or later."""
        if self._waiting is None:
            self._show(text)
        else:
            self._waiting.append(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""
