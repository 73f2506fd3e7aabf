"""Lines of the guest's console -> the end of a run at the first line that matches."""

from typing import Final, Protocol

from kinst.runtime.input.expression import Expression
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Clock

_LONGEST_LINE: Final = 4096  # bytes of a line that are searched again with what follows them
_LINE_REST: Final = 20_000_000  # ns that the rest of a line may take after a match


class Machine(Protocol):
    """A machine whose run can be ended."""

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...

    def finish(self, end: End) -> None:
        """End the run."""
        ...


class UntilWatch:
    """Searches each line of the console. A match ends the run when its line is complete, or after a short time if the
    line is a prompt, which never ends."""

    def __init__(self, system: Machine) -> None:
        """Nothing is searched for yet."""
        self._system = system
        self._expression: Expression | None = None
        self._line = b""
        self._end_at: int | None = None

    def search_for(self, expression: Expression | None) -> None:
        """Search from now on. A line that has begun is searched as well if the expression is the same as before."""
        if expression != self._expression:
            self._expression = expression
            self._line = b""

    def on_console(self, data: bytes) -> None:
        """Search what the guest printed, together with the beginning of its line."""
        if self._expression is None:
            return
        for number, part in enumerate(data.split(b"\n")):
            if number:
                self._end_line()
            if part and self._end_at is None:
                self._search(part)

    def _end_line(self) -> None:
        if self._end_at is not None:
            self.advance()
        self._line = b""

    def _search(self, part: bytes) -> None:
        assert self._expression is not None
        line = self._line + part
        if self._expression.is_in(line.removesuffix(b"\r")):
            self._end_at = self._system.clock.now() + _LINE_REST
        self._line = line if len(line) <= _LONGEST_LINE else line[-_LONGEST_LINE // 2 :]

    def deadline(self) -> int | None:
        """When the time to complete the line is over, in ns; None if nothing has matched."""
        return self._end_at

    def advance(self) -> None:
        """End the run if the time to complete the line is over."""
        self._end_at = None
        self._system.finish(End.UNTIL)
