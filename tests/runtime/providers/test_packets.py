"""Packets in a guest's memory -> what network providers tell of them, beside Python's own reading of the same bytes."""

import random
import socket
import struct
from typing import Any, cast

from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux import packets as subject
from kinst.runtime.trap.faults import Fault, FaultKind

HEAD = 0x1000


class Memory:
    """Some bytes at HEAD."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, address: int, size: int) -> bytes:
        found = self._content[address - HEAD : address - HEAD + size]
        if len(found) < size:
            raise Fault(FaultKind.BADADDR, address)
        return found

    def load(self, address: int, size: int) -> int:
        return int.from_bytes(self.read(address, size), "little")


class Host:
    """A host with memory alone: where a buffer's header is, is given."""

    def __init__(self, content: bytes) -> None:
        self.memory = Memory(content)
        self.types: Any = None


def packets(content: bytes) -> subject.Packets:
    found = subject.Packets(cast(ProviderHost, Host(content)))
    found.number = lambda _address, _start, *members: HEAD if members == ("head",) else 0
    return found


def drawn_v4(random_: random.Random) -> tuple[bytes, int, int, int]:
    """A packet, its protocol (0 of a later fragment), how long its header is, and its family."""
    words, protocol = random_.randrange(5, 16), random_.choice((1, 6, 17))
    offset, more = random_.choice((0, 0, random_.randrange(1, 8192))), random_.getrandbits(1)
    start = struct.pack(
        ">BBHHHBBH", 0x40 | words, 0, 1000, 7, more << 13 | offset, 64, protocol, random_.getrandbits(16)
    )
    return start + random_.randbytes(words * 4 - 12), 0 if offset else protocol, words * 4, socket.AF_INET


def drawn_v6(random_: random.Random) -> tuple[bytes, int, int, int]:
    kinds = [random_.choice((0, 43, 60)) for _ in range(random_.randrange(4))]
    protocol = random_.choice((6, 17, 58))
    fixed = struct.pack(">IHBB", 6 << 28 | random_.getrandbits(28), 900, [*kinds, protocol][0], 64)
    content = fixed + random_.randbytes(32)
    for following in [*kinds[1:], protocol] if kinds else ():
        length = random_.randrange(4)
        content += bytes((following, length)) + random_.randbytes(length * 8 + 6)
    return content, protocol, len(content), socket.AF_INET6


def test_drawn_packets_are_read_as_they_were_written() -> None:
    random_ = random.Random(8200)
    for _ in range(400):
        content, protocol, length, family = random_.choice((drawn_v4, drawn_v6))(random_)
        read = packets(content + random_.randbytes(20))
        packet = read.read(1)
        assert packet is not None
        assert (packet.protocol, packet.carried - HEAD) == (protocol, length)
        size = 4 if family == socket.AF_INET else 16
        at = 12 if size == 4 else 8
        sides = [read.content(address, size) for address in (packet.source, packet.destination)]
        assert sides == [content[at : at + size], content[at + size : at + 2 * size]]
        assert packet.family == (2 if size == 4 else 10)


def test_what_is_no_packet_is_none() -> None:
    assert packets(b"").read(1) is None
    assert packets(bytes(40)).read(1) is None
    assert packets(b"\x60" + bytes(5) + b"\0").read(1) is None  # cut off
    assert packets(b"\x45" + bytes(7)).read(1) is None
