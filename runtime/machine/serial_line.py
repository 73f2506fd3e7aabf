"""What is typed, by anybody -> bytes for the guest's UART, no faster than the guest takes them.

The wire has flow control: what the guest does not read waits here, and what a UART drops without having shown it to the
guest, when its FIFO is cleared, comes back.
"""

from collections.abc import Callable
from typing import Protocol


class Source(Protocol):
    """Somebody who types."""

    def look(self) -> None:
        """Called between any two turns: a chance to notice keys that are not meant for the guest."""
        ...

    def take(self, size: int) -> bytes:
        """What was typed, at most `size` bytes; the rest can be taken later."""
        ...

    def descriptor(self, *, is_awaited: bool) -> int | None:
        """A file descriptor that can be read when more was typed, for a machine that sleeps; None: there is nothing to
        wait for. `is_awaited`: the guest would take it at once."""
        ...


class SerialLine:
    """The receiving half of a serial line, from the sources to the UART."""

    def __init__(self) -> None:
        """Nobody types yet."""
        self._waiting = bytearray()
        self._sources: list[Source] = []
        self._receivers: list[Callable[[], None]] = []
        self._is_awaited = False
        self._owner: object = None
        self._on_wait: list[Callable[[], None]] = []

    # -- who types ----------------------------------------------------------------------------------------------------

    def type(self, data: bytes) -> None:
        """Type at once."""
        self._waiting += data
        self._offer()

    def attach(self, source: Source) -> None:
        """Let `source` type, too."""
        self._sources.append(source)

    def on_wait(self, call: Callable[[], None]) -> None:
        """Call this when the guest waits for somebody to type."""
        self._on_wait.append(call)

    @property
    def is_empty(self) -> bool:
        """Whether the guest has taken all that was typed by `type`."""
        return not self._waiting

    # -- who receives -------------------------------------------------------------------------------------------------

    def connect(self, receiver: Callable[[], None]) -> None:
        """Call `receiver` whenever there may be something to take."""
        self._receivers.append(receiver)

    def claim(self, owner: object) -> None:
        """From now on, only `owner` receives."""
        self._owner = owner

    def take(self, size: int, owner: object = None) -> bytes:
        """What was typed, at most `size` bytes, for a guest that an interrupt will tell of it; nothing if another owns
        the line."""
        if owner is not self._owner:
            return b""
        data = bytes(self._waiting[:size])
        del self._waiting[:size]
        for source in self._sources:
            if len(data) < size:
                data += source.take(size - len(data))
        self._is_awaited |= len(data) < size
        return data

    def poll(self, size: int) -> bytes:
        """What was typed, at most `size` bytes, for a guest that asks again and again until something comes."""
        data = self.take(size)
        if data:
            return data
        self._ask()
        return self.take(size)

    def put_back(self, data: bytes) -> None:
        """Give back what was taken last and the guest has not seen."""
        self._waiting[:0] = data

    # -- the machine --------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Between two turns, pass on what was typed."""
        for source in self._sources:
            source.look()
        self._offer()

    def wait(self) -> None:
        """Every CPU waits: let somebody type if the guest wants that."""
        if self._is_awaited:
            self._ask()

    def descriptors(self) -> list[int]:
        """What a machine that sleeps must wait for, so that it notices that something was typed."""
        found = [source.descriptor(is_awaited=self._is_awaited) for source in self._sources]
        return [descriptor for descriptor in found if descriptor is not None]

    def _ask(self) -> None:
        """The guest waits for somebody to type."""
        for call in self._on_wait:
            call()

    def _offer(self) -> None:
        self._is_awaited = False
        for receiver in self._receivers:
            receiver()
