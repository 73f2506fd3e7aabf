"""The receiving half of a UART: a serial line -> a FIFO that the guest reads.

A guest either enables an interrupt or polls the status register. For an interrupt the FIFO is kept full. A guest that
polls gets a byte only when it seems to wait for one: drivers also read the status before each byte that they send, and
when they reset the UART they read the status and one byte of data to discard it. Neither may lose a typed byte.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.serial_line import SerialLine

_MOST_POLLS: Final = 4  # reads of the status, without a byte sent in between, that do not mean a wait for input


class Receiver:
    """What was received and not read. `changed` is called when that becomes more or less."""

    def __init__(self, line: SerialLine, changed: Callable[[], None]) -> None:
        """One byte deep, without an interrupt."""
        self._line = line
        self._changed = changed
        self._held: deque[int] = deque()
        self._depth = 1
        self._is_interrupting = False
        self._polls = 0
        line.connect(self._fill)

    def __len__(self) -> int:
        """Bytes that can be read."""
        return len(self._held)

    @property
    def is_full(self) -> bool:
        """Whether the FIFO is full."""
        return len(self._held) >= self._depth

    def read(self) -> int:
        """The next byte, or 0."""
        value = self._held.popleft() if self._held else 0
        self._polls = 0
        self._fill()
        self._changed()
        return value

    def polled(self) -> None:
        """The guest read the status register, or is about to."""
        self._polls += 1
        if self._polls >= _MOST_POLLS and not self._held:
            self._hold(self._line.poll(1))

    def sent(self) -> None:
        """The guest sent a byte: a read of the status register before was for that."""
        self._polls = max(0, self._polls - 1)

    def interrupt(self, *, is_enabled: bool) -> None:
        """The guest enabled or disabled the interrupt for received bytes."""
        if is_enabled != self._is_interrupting:
            self._is_interrupting = is_enabled
            if is_enabled:
                self._fill()
            else:
                self._put_back()

    def reset(self, depth: int) -> None:
        """The guest cleared the FIFO, which holds `depth` bytes from now on."""
        self._depth, self._polls = depth, 0
        self._put_back()

    def _fill(self) -> None:
        if self._is_interrupting and not self.is_full:
            self._hold(self._line.take(self._depth - len(self._held)))

    def _hold(self, data: bytes) -> None:
        if data:
            self._held.extend(data)
            self._changed()

    def _put_back(self) -> None:
        if self._held:
            self._line.put_back(bytes(self._held))
            self._held.clear()
            self._changed()
