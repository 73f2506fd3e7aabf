"""GDB's remote serial protocol over a socket: requests and replies as text, checked and repeated where that is needed.

    $text#cc   cc: the sum of the bytes of text modulo 256, two hexadecimal digits
    +  -       it arrived; send it again. A stub can be asked to do without.
    %text#cc   a notification, which a stub sends unasked; none of them is used here
    x*c        in a reply: x is there `c` - 29 times in all, but once

(GDB manual, appendix E, "Overview".)
"""

import math
import re
import select
import socket
import time
from contextlib import suppress
from typing import Final

from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

LONGEST: Final = 1 << 20  # bytes of a reply
_TRIES: Final = 3  # of sending and of asking again
_SLOWEST: Final = 1000  # bytes of memory a second, over a line of 19,200 baud
_LEAST: Final = 0.1  # seconds to send something, if there is no time left at all
_RUN: Final = 29  # what a run's character has more than repetitions


class StubError(MachineError):
    """The other end of the connection is not a stub that follows the protocol. The message names it."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The time limits for a stub, in seconds."""

    reply: float = 5.0  # for one reply
    exchange: float = 30.0  # for all that is asked of it at a time, and for as long as memory comes from it
    end: float = math.inf  # of time.monotonic(): nothing is awaited after it


class Packets:
    """A connection to a stub."""

    def __init__(self, name: str, connection: socket.socket, patience: Patience) -> None:
        """`name` is for messages. The time of the exchange begins now."""
        self._name, self._connection, self._patience = name, connection, patience
        self._received = bytearray()
        self._start = time.monotonic()
        self._end = min(self._start + patience.exchange, patience.end)
        self._deadline = self._end
        self._has_acknowledgements = True

    def stop_acknowledging(self) -> None:
        """From now on, acknowledgements are neither sent nor expected (QStartNoAckMode)."""
        self._has_acknowledgements = False

    def earn(self, size: int) -> None:
        """Allow more time for the exchange: `size` bytes of memory have arrived."""
        self._end = min(self._end + size / _SLOWEST, self._patience.end)

    def hurry(self) -> None:
        """Allow only the time of a few replies for the rest of the exchange."""
        self._end = min(self._end, time.monotonic() + _TRIES * self._patience.reply)

    def ask(self, request: str) -> str:
        """Send a request and return the reply to it. Raises StubError."""
        self.send(request)
        return self.reply()

    def send_last(self, request: str) -> None:
        """Send a last request, without waiting for a reply."""
        with suppress(StubError):
            self._put(_framed(request))

    def has_more(self, seconds: float = 0) -> bool:
        """Whether bytes have arrived that no reply has taken, or the connection has been closed; so long, if need be,
        this is awaited."""
        return bool(self._received) or bool(select.select([self._connection], [], [], seconds)[0])

    def reply(self) -> str:
        """The next reply. Raises StubError."""
        self._begin()
        for _ in range(_TRIES):
            text, check = self._packet()
            # Without acknowledgements no packet can be requested again, and TCP has checked the bytes: GDB ignores the
            # checksum then, too.
            if not self._has_acknowledgements:
                return self._expanded(text)
            if check == sum(text) & 0xFF:
                self._put(b"+")
                return self._expanded(text)
            self._put(b"-")
        raise StubError(f"{self._name}: its replies do not arrive intact: the checksum was wrong {_TRIES} times")

    def send(self, request: str) -> None:
        """Send a request, whose reply comes later. Raises StubError."""
        self._begin()
        for _ in range(_TRIES):
            self._put(_framed(request))
            if not self._has_acknowledgements or self._is_acknowledged():
                return
        raise StubError(f"{self._name}: refused a request {_TRIES} times ({request[:40]})")

    def _begin(self) -> None:
        """Begin a request, or to wait for a reply. Raises StubError: there is no time left."""
        now = time.monotonic()
        if now >= self._end:
            raise self._late()
        self._deadline = min(now + self._patience.reply, self._end)

    def _is_acknowledged(self) -> bool:
        """Whether the request arrived: read on to its acknowledgement."""
        while True:
            byte = self._byte()
            if byte in b"+-":
                return byte == ord("+")
            if byte in b"$%":  # a late reply, or a notification: not the reply to this request
                self._rest()

    def _packet(self) -> tuple[bytes, int]:
        """The next packet that is not a notification, and its checksum."""
        while True:
            byte = self._byte()
            if byte == ord("$"):
                return self._rest()
            if byte == ord("%"):
                self._rest()

    def _rest(self) -> tuple[bytes, int]:
        """The rest of a packet after its first byte, and its checksum; -1 if that is not a number."""
        while b"#" not in self._received[: LONGEST + 1]:
            if len(self._received) > LONGEST:
                raise StubError(f"{self._name}: a reply of more than {LONGEST} bytes")
            self._receive()
        end = self._received.index(b"#")
        while len(self._received) < end + 3:
            self._receive()
        text, digits = bytes(self._received[:end]), bytes(self._received[end + 1 : end + 3])
        del self._received[: end + 3]
        return text, int(digits, 16) if re.fullmatch(rb"[0-9a-fA-F]{2}", digits) else -1

    def _byte(self) -> int:
        if not self._received:
            self._receive()
        return self._received.pop(0)

    def _receive(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._silent()
        self._connection.settimeout(left)
        try:
            found = self._connection.recv(1 << 16)
        except TimeoutError:
            raise self._silent() from None
        except OSError as error:
            raise StubError(f"{self._name}: the connection is lost: {error.strerror}") from None
        if not found:
            raise StubError(f"{self._name}: closed the connection")
        self._received += found

    def _silent(self) -> StubError:
        if self._deadline >= self._end:
            return self._late()
        waited = f"no reply for {self._patience.reply:g} seconds"
        return StubError(f"{self._name}: {waited}: is it a gdb stub, and is it free?")

    def _late(self) -> StubError:
        """The error if bytes arrive but no reply is complete in time."""
        took = time.monotonic() - self._start
        return StubError(f"{self._name}: given up after {took:.1f} seconds: what it replies has no end")

    def _put(self, data: bytes) -> None:
        self._connection.settimeout(max(_LEAST, self._deadline - time.monotonic()))
        try:
            self._connection.sendall(data)
        except TimeoutError:
            raise self._silent() from None
        except OSError as error:
            raise StubError(f"{self._name}: the connection is lost: {error.strerror}") from None

    def _expanded(self, text: bytes) -> str:
        """A reply with its run-length encoding expanded."""
        # The escape character `}` needs no care here: it occurs in binary replies only, which are not requested.
        pieces = text.split(b"*")
        found = bytearray(pieces[0])
        for piece in pieces[1:]:
            count = piece[0] - _RUN if piece and found else 0
            if count < 1 or len(found) + count > LONGEST:
                raise StubError(f"{self._name}: a reply that is not in the protocol")
            found += found[-1:] * count + piece[1:]
        return found.decode("latin-1")


def _framed(request: str) -> bytes:
    text = request.encode("ascii")
    return b"$%b#%02x" % (text, sum(text) & 0xFF)
