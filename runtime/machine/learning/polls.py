"""Reads of registers that nobody models -> polls: one place that reads one register over and over."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kinst.runtime.machine.physical.unmodelled import Register

FIRST: Final = 50  # reads in a row that are a poll
_MORE: Final = 4  # after what did not help, it is looked at again when there are so many times as many
_LAST: Final = FIRST * _MORE**4
_PAUSE: Final = 200_000_000  # ns between two reads that are none of one loop


@dataclass(slots=True)
class Poll:
    """A place that reads a register. `due`: the reads at which it is looked at."""

    register: Register
    place: int  # the PC of the block
    cpu: int = 0
    count: int = 0
    last: int = 0  # when, in ns
    due: int = FIRST

    def put_off(self) -> bool:
        """Look at it later; whether that will be, or it is given up."""
        self.due *= _MORE
        return self.due <= _LAST


class Polls:
    """The polls of one machine."""

    def __init__(self, now: Callable[[], int], cpu: Callable[[], int], found: Callable[[], None]) -> None:
        """`now` gives the machine's time (ns), `cpu` the number of the CPU that runs; `found` is called when one is
        due."""
        self._now, self._cpu, self._found = now, cpu, found
        self._polls: dict[tuple[int, int], Poll] = {}
        self._due: list[Poll] = []

    def note(self, register: Register, place: int) -> None:
        """Note a read; see `Unmodelled.watch`."""
        now = self._now()
        poll = self._polls.get((register.address, place))
        if poll is None:
            poll = self._polls[register.address, place] = Poll(register, place)
        if now - poll.last > _PAUSE:
            poll.count, poll.due = 0, FIRST
        poll.count, poll.last = poll.count + 1, now
        if poll.count == poll.due:
            poll.cpu = self._cpu()
            self._due.append(poll)
            self._found()

    def take(self) -> list[Poll]:
        """Those that are due, each once."""
        due, self._due = self._due, []
        return due

    def begin_anew(self, register: Register) -> None:
        """Forget the reads of a register: it gives something else from now on."""
        for key in [key for key, poll in self._polls.items() if poll.register is register]:
            del self._polls[key]
