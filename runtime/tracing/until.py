"""Lines of the guest's console -> the end of a run at the first that matches."""

import re
from typing import Final

from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.system import System

_LONGEST_LINE: Final = 4096  # bytes in which an expression is looked for: again with each
_LINE_REST: Final = 20_000_000  # ns that a line which matched gets to be completed


class UntilWatch:
    """Looks at each line of the console. A match ends the run when its line is complete, or a little later if it is a
    prompt."""

    def __init__(self, system: System) -> None:
        """Nothing is looked for yet."""
        self._system = system
        self._expression: re.Pattern[bytes] | None = None
        self._line = bytearray()
        self._end_at: int | None = None

    def look_for(self, expression: re.Pattern[bytes] | None) -> None:
        """From now on. A line that has begun counts if the same was looked for in it already."""
        if expression is not self._expression:
            self._expression = expression
            self._line.clear()

    def look(self, data: bytes) -> None:
        """The guest printed."""
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
        """When the line has had its time."""
        return self._end_at

    def advance(self) -> None:
        """Enough."""
        self._end_at = None
        self._system.finish(End.UNTIL)
