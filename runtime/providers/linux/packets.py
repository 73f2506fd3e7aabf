"""Packets of a Linux kernel as DTrace's network providers tell of them: what is in a socket buffer (struct sk_buff).

The native arguments of an event are addresses: the buffer, the socket, the IP header, and two or three more, which the
libraries linux_ip.d, linux_tcp.d and linux_udp.d translate.
"""

from typing import Final

from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.structures import Structures
from kinst.runtime.trap.faults import Fault
from kinst.targets.values import dataclass

BUFFER: Final = "struct sk_buff"
SOCKET: Final = "struct sock"
COMMON: Final = "__sk_common"
TCP, UDP = 6, 17
INET, INET6 = 2, 10  # AF_*
_V4: Final = (12, 16, 4)  # RFC 791: where an IPv4 header has its addresses, and how long they are
_V6: Final = (8, 24, 16)  # RFC 8200
_OFFSET: Final = 0xFF1F  # a fragment's offset in 8 bytes, of a field of IPv4 that is read as little endian
_HEADERS: Final = frozenset((0, 43, 60))  # of IPv6, before what is carried: hop-by-hop, routing, destination options
_MOST_HEADERS: Final = 8


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that is in memory from its IP header on."""

    buffer: int
    ip: int  # where its IP header is
    family: int
    source: int  # where its addresses are
    destination: int
    protocol: int  # that is carried; 0: a fragment that is not the first
    carried: int  # where the header of that is


class Packets:
    """Socket buffers -> packets."""

    def __init__(self, host: ProviderHost) -> None:
        self._host = host
        structures = Structures(host)
        self.number, self.member = structures.number, structures.member

    def read(self, buffer: int) -> Packet | None:
        """The packet in a buffer whose network header is known; None if it is not of IP."""
        ip = self.number(buffer, BUFFER, "head") + self.number(buffer, BUFFER, "network_header")
        try:
            version = self.byte(ip) >> 4
            if version == 4:
                return self._version_4(buffer, ip)
            return self._version_6(buffer, ip) if version == 6 else None
        except Fault:
            return None

    def byte(self, address: int) -> int:
        """A byte of memory. Raises Fault."""
        return self._host.memory.load(address, 1)

    def common(self, socket: int, member: str) -> int:
        """A member of what all kinds of sockets have (struct sock_common)."""
        return self.number(socket, SOCKET, COMMON, member)

    def remote_port(self, socket: int) -> int:
        """The port of the other end, which a socket has as packets do."""
        return int.from_bytes(self.common(socket, "skc_dport").to_bytes(2, "little"), "big")

    def big_endian(self, address: int, size: int) -> int:
        """A number in a packet; 0 where there is no memory."""
        return int.from_bytes(self.content(address, size), "big")

    def content(self, address: int, size: int) -> bytes:
        """Bytes of a packet; none where there is no memory."""
        try:
            return self._host.memory.read(address, size)
        except Fault:
            return b""

    def _version_4(self, buffer: int, ip: int) -> Packet:
        source, destination, _ = _V4
        is_later = self._host.memory.load(ip + 6, 2) & _OFFSET
        protocol, carried = 0 if is_later else self.byte(ip + 9), ip + (self.byte(ip) & 15) * 4
        return Packet(buffer, ip, INET, ip + source, ip + destination, protocol, carried)

    def _version_6(self, buffer: int, ip: int) -> Packet:
        source, destination, _ = _V6
        protocol, carried = self.byte(ip + 6), ip + 40
        for _ in range(_MOST_HEADERS):
            if protocol not in _HEADERS:
                break
            protocol, carried = self.byte(carried), carried + (self.byte(carried + 1) + 1) * 8
        return Packet(buffer, ip, INET6, ip + source, ip + destination, protocol, carried)
