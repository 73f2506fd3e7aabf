"""The connection to a debugger: packets in, replies out, acknowledged until it asks to do without."""

import select
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kinst.runtime.debugger.packets import Decoder, Event, Packet, Signal, framed

_PATIENCE: Final = 0.1  # s until somebody looks whether the run is over
_LONGEST_SEND: Final = 30.0  # s for a debugger that does not read what it gets


class GoneError(Exception):
    """The debugger has closed the connection, or does not read."""


class Channel:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        """It has just been accepted."""
        self._connection = connection
        connection.settimeout(_LONGEST_SEND)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a step is two small packets
        self._decoder = Decoder()
        self._events = deque[Event]()
        self._has_acknowledgements = True
        self._last = b""  # to send again

    def fileno(self) -> int:
        """For select."""
        return self._connection.fileno()

    @property
    def has_events(self) -> bool:
        """Whether something has been received that nobody has asked for yet."""
        return bool(self._events)

    def stop_acknowledging(self) -> None:
        """QStartNoAckMode: from now on, neither side acknowledges."""
        self._has_acknowledgements = False

    def send(self, data: bytes) -> None:
        """Send a reply. Raises GoneError."""
        self._last = framed(data)
        self._put(self._last)

    def waiting(self) -> bytes | Signal | None:
        """What has arrived: a packet's data or an interrupt; None: nothing. Raises GoneError."""
        while True:
            while self._events:
                found = self._taken(self._events.popleft())
                if found is not None:
                    return found
            if not select.select([self._connection], [], [], 0)[0]:
                return None
            self._receive()

    def next(self, is_over: Callable[[], bool]) -> bytes | Signal | None:
        """The same, but wait for it; None: the run `is_over`. Raises GoneError."""
        while not is_over():
            found = self.waiting()
            if found is not None:
                return found
            select.select([self._connection], [], [], _PATIENCE)
        return None

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _taken(self, event: Event) -> bytes | Signal | None:
        match event:
            case Packet(data, is_intact):
                # Without acknowledgements nothing can be requested again, and TCP has checked the bytes.
                if self._has_acknowledgements:
                    self._put(b"+" if is_intact else b"-")
                return data if is_intact or not self._has_acknowledgements else None
            case Signal.INTERRUPT:
                return event
            case Signal.REFUSED if self._has_acknowledgements and self._last:
                self._put(self._last)
        return None

    def _receive(self) -> None:
        try:
            data = self._connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            raise GoneError
        self._events += self._decoder.feed(data)

    def _put(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except OSError:
            raise GoneError from None
