"""What is typed -> bytes for the guest's UART, no faster than the guest takes them.

The line has flow control: what the guest does not read waits here, and what a UART would lose unread when its FIFO is
cleared is put back.
"""

from collections import UserList
from collections.abc import Callable
from typing import Protocol


class Source(Protocol):
    """A source of what is typed: a terminal, a script."""

    def look(self) -> None:
        """Called between any two turns, to handle keys that are not meant for the guest."""
        ...

    def take(self, size: int) -> bytes:
        """What was typed, at most `size` bytes; the rest can be taken later."""
        ...

    def descriptor(self, *, is_awaited: bool) -> int | None:
        """A file descriptor that becomes readable when more was typed, for a machine that sleeps; None: there is
        nothing to wait for. `is_awaited`: the guest would take it at once."""
        ...


class SerialLine:
    """The receiving half of a serial line, from the sources to the UART."""

    def __init__(self) -> None:
        """There are no sources yet."""
        self._waiting = bytearray()
        # Who types is the run's and not the machine's: in a list a snapshot would keep it, if it is empty.
        self._sources: UserList[Source] = UserList()
        self._receivers: list[Callable[[], None]] = []
        self._is_awaited = False
        self.taken = 0  # bytes that came from sources, which nobody can type again
        self._owner: object = None
        self._on_wait: UserList[Callable[[], None]] = UserList()

    # -- sources ------------------------------------------------------------------------------------------------------

    def type(self, data: bytes) -> None:
        """Type these bytes."""
        self._waiting += data
        self._offer()

    def attach(self, source: Source) -> None:
        """Add a source."""
        self._sources.append(source)

    @property
    def has_sources(self) -> bool:
        """Whether somebody may type at any time."""
        return bool(self._sources)

    def on_wait(self, call: Callable[[], None]) -> None:
        """Call this when the guest waits for input."""
        self._on_wait.append(call)

    @property
    def is_empty(self) -> bool:
        """Whether the guest has taken all that was typed by `type`."""
        return not self._waiting

    # -- receivers ----------------------------------------------------------------------------------------------------

    def connect(self, receiver: Callable[[], None]) -> None:
        """Call `receiver` whenever there may be something to take."""
        self._receivers.append(receiver)

    def claim(self, owner: object) -> None:
        """From now on, only `owner` receives."""
        self._owner = owner

    def take(self, size: int, owner: object = None) -> bytes:
        """What was typed, at most `size` bytes, for a guest that waits for an interrupt; nothing if another receiver
        owns the line."""
        if owner is not self._owner:
            return b""
        data = bytes(self._waiting[:size])
        del self._waiting[:size]
        for source in self._sources:
            if len(data) < size:
                typed = source.take(size - len(data))
                self.taken += len(typed)
                data += typed
        self._is_awaited |= len(data) < size
        return data

    def poll(self, size: int) -> bytes:
        """What was typed, at most `size` bytes, for a guest that polls."""
        data = self.take(size)
        if data:
            return data
        self._ask()
        return self.take(size)

    def put_back(self, data: bytes) -> None:
        """Put back what was taken last and the guest has not read."""
        self._waiting[:0] = data

    # -- the machine --------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Between two turns, pass on what was typed."""
        for source in self._sources:
            source.look()
        self._offer()

    def wait(self) -> None:
        """Called when every CPU waits: report it if the guest wants input."""
        if self._is_awaited:
            self._ask()

    def descriptors(self) -> list[int]:
        """The descriptors that a machine that sleeps must wait for, so that it notices input."""
        found = [source.descriptor(is_awaited=self._is_awaited) for source in self._sources]
        return [descriptor for descriptor in found if descriptor is not None]

    def _ask(self) -> None:
        """Report that the guest waits for input."""
        for call in self._on_wait:
            call()

    def _offer(self) -> None:
        self._is_awaited = False
        for receiver in self._receivers:
            receiver()
