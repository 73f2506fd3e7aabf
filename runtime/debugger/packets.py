"""Bytes from a debugger -> packets, acknowledgements and interrupts; and replies as bytes.

    $data#cc   cc: the sum of the bytes of data modulo 256, two hexadecimal digits
    }x         in data: the byte x ^ 0x20, for `$`, `#`, `}` and, in replies, `*`
    +  -       it arrived; send it again
    0x03       interrupt the guest

(GDB manual, appendix E, "Overview". `kinst.runtime.readout.packets` is the other end.)
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from kinst.targets.values import dataclass

LONGEST: Final = 1 << 16  # bytes of a packet's data; what is longer is dropped
_ESCAPED: Final = b"#$}*"
_ESCAPE, _FLIP = ord("}"), 0x20
_DIGITS: Final = frozenset(b"0123456789abcdefABCDEF")


class Signal(Enum):
    """What comes besides packets."""

    ACKNOWLEDGED = auto()
    REFUSED = auto()
    INTERRUPT = auto()


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet with its escapes undone; `is_intact`: the checksum was right."""

    data: bytes
    is_intact: bool


Event = Packet | Signal
_SIGNALS: Final = {ord("+"): Signal.ACKNOWLEDGED, ord("-"): Signal.REFUSED, 3: Signal.INTERRUPT}


def framed(data: bytes) -> bytes:
    """A reply as it is sent. What needs an escape has it."""
    escaped = bytearray()
    for byte in data:
        escaped += bytes((_ESCAPE, byte ^ _FLIP)) if byte in _ESCAPED else bytes((byte,))
    return b"$%b#%02x" % (bytes(escaped), sum(escaped) & 0xFF)


class Decoder:
    """The events in a stream that arrives in pieces."""

    def __init__(self) -> None:
        """Nothing has arrived."""
        self._received = bytearray()

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that are complete with these bytes. Of noise between packets nothing is told."""
        self._received += data
        while self._received:
            first = self._received[0]
            if first == ord("$"):
                packet = self._packet()
                if packet is None:
                    return
                yield packet
                continue
            del self._received[0]
            if first in _SIGNALS:
                yield _SIGNALS[first]

    def _packet(self) -> Packet | None:
        """The packet that has begun; None: its end has not arrived."""
        end = self._received.find(b"#")
        if end < 0 or end + 3 > len(self._received):
            if len(self._received) <= LONGEST + 4:
                return None
            self._received.clear()  # no packet of ours is that long: refuse what there is of it
            return Packet(b"", is_intact=False)
        data, digits = bytes(self._received[1:end]), self._received[end + 1 : end + 3]
        del self._received[: end + 3]
        is_intact = _DIGITS.issuperset(digits) and int(digits, 16) == sum(data) & 0xFF
        return Packet(_plain(data), is_intact)


def _plain(data: bytes) -> bytes:
    first, *pieces = data.split(bytes((_ESCAPE,)))
    plain, rest = bytearray(first), iter(pieces)
    for piece in rest:
        # An escaped `}` is two of them, with nothing between: 0x7d stands for 0x5d, so that this cannot be.
        plain += bytes((piece[0] ^ _FLIP,)) + piece[1:] if piece else b""
    return bytes(plain)
