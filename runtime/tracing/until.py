"""Lines of the guest's console -> the end of a run at the first line that matches."""

import re
from typing import Final

from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.system import System

_LONGEST_LINE: Final = 4096  # bytes of a line that are searched, again with each new byte
_LINE_REST: Final = 20_000_000  # ns in which a line that matched can still be completed


class UntilWatch:
    """Searches each line of the console. A match ends the run when its line is complete, or a little later if the line
    is a prompt."""

    def __init__(self, system: System) -> None:
        """Nothing is looked for yet."""
        self._system = system
        self._expression: re.Pattern[bytes] | None = None
        self._line = bytearray()
        self._end_at: int | None = None

    def look_for(self, expression: re.Pattern[bytes] | None) -> None:
        """Search from now on. A line that has begun is searched as well if the expression is the same as before."""
        if expression is not self._expression:
            self._expression = expression
            self._line.clear()

    def look(self, data: bytes) -> None:
        """Search what the guest printed."""
        if self._expression is None:
            return
        for byte in data:
            if byte == ord("\n"):
                if self._end_at is not None:
                    self.advance()
                self._line.clear()
                continue
            self._line.append(byte)
            if len(self._line) > _LONGEST_LINE:
                del self._line[: _LONGEST_LINE // 2]
            if self._end_at is None and self._expression.search(self._line):
                self._end_at = self._system.clock.now() + _LINE_REST

    def deadline(self) -> int | None:
        """When the time to complete the line is over, in ns; None if nothing has matched."""
        return self._end_at

    def advance(self) -> None:
        """End the run if the time to complete the line is over."""
        self._end_at = None
        self._system.finish(End.UNTIL)
