"""Lines of text and the guest's console -> lines typed one by one, whenever the guest waits for one.

Everything is decided by the machine's time, so that under the instruction clock the guest receives the same at the same
instruction in every run.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from kinst.runtime.input.expression import Expression
from kinst.runtime.machine.console_line import ConsoleLine
from kinst.runtime.machine.device import Clock, Timed
from kinst.runtime.machine.serial_line import SerialLine
from kinst.targets.values import dataclass

_REST: Final = 20_000_000  # ns without output after which a guest is not about to print more
_MOST_HEARD: Final = 1 << 16  # bytes of the console that are searched together


def lines_to_type(text: bytes) -> list[bytes]:
    """The lines of a text as they are typed: Enter is a carriage return. A last line without an end has none."""
    *lines, rest = text.split(b"\n")
    typed = [line.removesuffix(b"\r") + b"\r" for line in lines]
    return [*typed, rest] if rest else typed


@dataclass(frozen=True, slots=True)
class _Line:
    data: bytes
    prompt: Expression | None  # what the console's last line must contain; None: the guest waits for input


class Typed(Protocol):
    """A machine with a serial line for input: `kinst.runtime.machine.system.System`, or one that runs elsewhere."""

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...

    @property
    def serial_line(self) -> SerialLine:
        """Where keys are sent."""
        ...

    def attach_timed(self, timed: Timed) -> None:
        """Call `timed.advance` at its deadlines."""
        ...


@dataclass(frozen=True, slots=True)
class Keyboard:
    """The input of a machine: its serial line, and what types lines there."""

    typist: "Typist"
    serial_line: SerialLine
    go_on: Callable[[], None] | None = None  # lets a guest continue that stop() has paused; None: none is paused so


class Typist:
    """Types lines in order."""

    def __init__(self, system: Typed, rest: int = _REST) -> None:
        """There is nothing to type yet. `rest`: ns without output after which a guest that polls waits for input."""
        self._system, self._rest = system, rest
        self._lines: deque[_Line] = deque()
        self._typed: list[_Line] = []
        self._shown = ConsoleLine()
        self._heard = bytearray()  # what is not in `_shown` yet
        self._heard_at = 0
        self._is_searched = True  # whether the console's last line is known not to be the prompt
        system.attach_timed(self)
        system.serial_line.on_wait(self._guest_waits)

    def add(self, lines: Iterable[bytes], prompt: Expression | None = None) -> None:
        """Type these lines after those that are still to be typed: each when the last line of the console matches
        `prompt`, or without one when the guest waits for input: it polls its UART or all CPUs sleep, and it has printed
        nothing for a while."""
        self._lines.extend(_Line(line, prompt) for line in lines)
        self._is_searched = False

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to type."""
        return not self._lines

    def state(self) -> tuple[bytes, int, bytes, int, int]:
        """For a snapshot: what the console's last line shows, when that was, and how many lines were typed."""
        self._show()
        return *self._shown.state, self._heard_at, len(self._typed)

    def restore(self, state: tuple[bytes, int, bytes, int, int]) -> None:
        """Return to what `state` gave. Lines that were typed since then are still to be typed; none of another
        machine's are."""
        line, column, unfinished, self._heard_at, typed = state
        self._shown.restore((line, column, unfinished))
        self._heard.clear()
        self._is_searched = False
        while len(self._typed) > typed:
            self._lines.appendleft(self._typed.pop())

    def on_console(self, data: bytes) -> None:
        """The guest printed something."""
        self._heard += data
        self._heard_at = self._system.clock.now()
        self._is_searched = False
        if len(self._heard) > _MOST_HEARD:
            self._show()

    def _show(self) -> None:
        self._shown.add(bytes(self._heard))
        self._heard.clear()

    def deadline(self) -> int | None:
        """When it may be time to type, in ns; None if only the guest can change that."""
        if not self._lines:
            return None
        if self._lines[0].prompt is None:
            quiet = self._heard_at + self._rest
            return quiet if quiet > self._system.clock.now() else None
        return None if self._is_searched else self._heard_at + self._rest

    def advance(self) -> None:
        """Type the next line if its prompt is shown."""
        prompt = self._lines[0].prompt
        self._is_searched = True
        self._show()
        if prompt is not None and prompt.is_in(self._shown.text):
            self._type()

    def _guest_waits(self) -> None:
        """Type the next line if it has no prompt, and neither input nor output is pending."""
        if not self._lines or self._lines[0].prompt is not None or not self._system.serial_line.is_empty:
            return
        if self._system.clock.now() >= self._heard_at + self._rest:
            self._type()

    def _type(self) -> None:
        """Type a line. What the console shows was the prompt of this line, and not of the next."""
        self._show()
        self._shown.clear()
        self._typed.append(self._lines.popleft())
        self._system.serial_line.type(self._typed[-1].data)
