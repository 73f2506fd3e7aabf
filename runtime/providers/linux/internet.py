"""ip and udp, DTrace's providers of packets, from functions of Linux through which each packet goes.

What a machine sends itself is told of as sent before fragments are made of it, but by `ip`, which tells of fragments.
What it only forwards has no socket: `tcp` and `udp` do not tell of it.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, Place, function
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux.packets import BUFFER, INET, SOCKET, UDP, Packet, Packets
from kinst.runtime.providers.provider import Argument

PACKET: Final = Argument(f"{BUFFER} *", translated="pktinfo_t *")
CONNECTION: Final = Argument(f"{SOCKET} *", translated="csinfo_t *")
HEADER: Final = Argument("struct iphdr *", translated="ipinfo_t *")
_IP: Final = (
    PACKET,
    CONNECTION,
    HEADER,
    Argument("struct net_device *", translated="ifinfo_t *"),
    Argument("struct iphdr *", translated="ipv4info_t *"),
    Argument("struct ipv6hdr *", translated="ipv6info_t *"),
)
_UDP: Final = (
    PACKET,
    CONNECTION,
    HEADER,
    Argument(f"{SOCKET} *", translated="udpsinfo_t *"),
    Argument("struct udphdr *", translated="udpinfo_t *"),
)
# Each packet that leaves goes through one of these, with the namespace, its socket and its buffer.
_OUTPUT: Final = ("ip_output", "ip_mc_output", "ip6_output")
Told = Callable[[Packet, int], Sequence[int] | None]  # a packet and its socket -> the arguments


def leaving(packets: Packets, told: Told) -> tuple[Place, ...]:
    """Where packets that this machine makes leave."""

    def sent(at: Numbers) -> Sequence[int] | None:
        packet = packets.read(at(2)) if at(1) else None
        return None if packet is None else told(packet, at(1))

    return tuple(function(name, sent) for name in _OUTPUT)


class _Ip:
    """The arguments of ip's events."""

    def __init__(self, packets: Packets) -> None:
        self._packets = packets

    def sent(self, at: Numbers) -> Sequence[int] | None:
        """ip_finish_output2(namespace, socket, buffer), of each fragment."""
        return self._told(at(2), at(1))

    def received(self, at: Numbers) -> Sequence[int] | None:
        """ip_rcv_core(buffer, ...)."""
        return self._told(at(0), self._packets.number(at(0), BUFFER, "sk"))

    def _told(self, buffer: int, socket: int) -> Sequence[int] | None:
        packet = self._packets.read(buffer)
        if packet is None:
            return None
        headers = (packet.ip, 0) if packet.family == INET else (0, packet.ip)
        return (buffer, socket, packet.ip, self._packets.number(buffer, BUFFER, "dev"), *headers)


def ip_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_ip(4). Without the type of socket buffers they cannot be read: then it has no probes."""
    if host.types.type_named(BUFFER) is None:
        return EventsProvider("ip", (), host)
    ip = _Ip(Packets(host))
    sent = function("ip_finish_output2", ip.sent), function("ip6_finish_output2", ip.sent)
    received = function("ip_rcv_core", ip.received), function("ip6_rcv_core", ip.received)
    return EventsProvider("ip", (Event("send", sent, _IP), Event("receive", received, _IP)), host)


def udp_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_udp(4). Without the type of socket buffers they cannot be read: then it has no probes."""
    if host.types.type_named(BUFFER) is None:
        return EventsProvider("udp", (), host)
    packets = Packets(host)

    def told(packet: Packet, socket: int) -> Sequence[int] | None:
        is_udp = packet.protocol == UDP
        return (packet.buffer, socket, packet.ip, socket, packet.carried) if is_udp else None

    def received(at: Numbers) -> Sequence[int] | None:
        """udp_queue_rcv_one_skb(socket, buffer), for each socket that gets it."""
        packet = packets.read(at(1))
        return None if packet is None else told(packet, at(0))

    places = function("udp_queue_rcv_one_skb", received), function("udpv6_queue_rcv_one_skb", received)
    return EventsProvider("udp", (Event("send", leaving(packets, told), _UDP), Event("receive", places, _UDP)), host)
