"""tcp, DTrace's provider of connections, from functions of Linux and its tracepoint of states.

Besides the native arguments that `linux_tcp.d` translates, each event has what it says of the connection: arg6 is the
state by DTrace's numbers plus 16, above the family, the local and the remote port of 16 bits each; arg7 the whole
socket (struct tcp_sock), or 0 where there is none, as for what answers a closed port; arg8 and arg9 point to the local
and the remote address.
"""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, function, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux.internet import CONNECTION, HEADER, PACKET, leaving
from kinst.runtime.providers.linux.known_sockets import KnownSockets
from kinst.runtime.providers.linux.packets import BUFFER, COMMON, INET6, SOCKET, TCP, Packet, Packets
from kinst.runtime.providers.provider import Argument
from kinst.targets.values import dataclass

_ARGUMENTS: Final = (
    PACKET,
    CONNECTION,
    HEADER,
    Argument(f"{SOCKET} *", translated="tcpsinfo_t *"),
    Argument("struct tcphdr *", translated="tcpinfo_t *"),
    Argument("int *", translated="tcplsinfo_t *"),
)
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_SEQUENCE, _FLAGS = 4, 13  # where a TCP header has them (RFC 9293, 3.1)
_SYN_SENT, _TIME_WAIT, _NEW_SYN_RECV = 2, 6, 12
_ESTABLISHED: Final = 0
_CLOSED: Final = -6
# Linux' TCP_* -> DTrace's TCP_STATE_*
_STATES: Final = {1: 0, 2: -2, 3: -1, 4: 2, 5: 5, 6: 6, 7: -6, 8: 1, 9: 4, 10: -3, 11: 3, 12: -1}
_STATE: Final = "inet_sock_set_state"
_UNKNOWN: Final = -7
_BIAS: Final = 16  # so that no state is negative


@dataclass(frozen=True, slots=True)
class _Ends:
    """Both ends of a connection: ports, and where their addresses are."""

    family: int
    ports: tuple[int, int]  # local, remote
    addresses: tuple[int, int]


class _Connections:
    """The arguments of events."""

    def __init__(self, host: ProviderHost) -> None:
        self._packets = Packets(host)
        self._number = self._packets.number
        self._known = KnownSockets(self._packets)

    def sent(self, packet: Packet, socket: int) -> Sequence[int] | None:
        """A packet that leaves."""
        return self._told(packet, socket, is_leaving=True) if packet.protocol == TCP else None

    def requested(self, packet: Packet, socket: int) -> Sequence[int] | None:
        """One that asks for a connection, for the first time."""
        again = self._number(socket, "struct inet_connection_sock", "icsk_retransmits")
        return self.sent(packet, socket) if self._has(packet, _SYN) and not again else None

    def refused(self, packet: Packet, socket: int) -> Sequence[int] | None:
        """One that says no to who asks: only what answers a segment without ACK has no number (RFC 9293, 3.5.2)."""
        is_no = self._has(packet, _RST | _ACK) and not self._packets.big_endian(packet.carried + _SEQUENCE, 4)
        return self.sent(packet, socket) if is_no else None

    def received(self, at: Numbers) -> Sequence[int] | None:
        """tcp_v4_rcv(buffer). A buffer has a socket only if one was found early; else it is one that was seen."""
        packet = self._packets.read(at(0))
        if packet is None:
            return None
        socket = self._number(at(0), BUFFER, "sk") or self._known.of(packet)
        return self._told(packet, socket, None if socket else _UNKNOWN, is_leaving=False)

    def seen(self, packet: Packet, socket: int) -> None:
        """A packet that leaves: no event, but to know the socket of what arrives."""
        if packet.protocol == TCP:
            self._known.sent(packet, socket)

    def seen_to_change(self, at: Numbers) -> None:
        """inet_sock_set_state(socket, old, new): likewise."""
        self._known.changed(at(0), at(2))

    def connected(self, at: Numbers) -> Sequence[int] | None:
        """tcp_finish_connect(socket, buffer)."""
        return self._arrived(at(1), at(0), _ESTABLISHED)

    def accepted(self, at: Numbers) -> Sequence[int] | None:
        """tcp_child_process(parent, child, buffer)."""
        return self._arrived(at(2), at(1), _ESTABLISHED)

    def was_refused(self, at: Numbers) -> Sequence[int] | None:
        """tcp_reset(socket, buffer)."""
        return self._arrived(at(1), at(0)) if self._state(at(0)) == _STATES[_SYN_SENT] else None

    def changed(self, at: Numbers) -> Sequence[int] | None:
        """inet_sock_set_state(socket, old, new)."""
        socket, old, new = at(0), at(1), at(2)
        if self._number(socket, SOCKET, "sk_protocol") != TCP:
            return None
        local, family = self._packets.common(socket, "skc_num"), self._packets.common(socket, "skc_family")
        ends = _Ends(family, (local, self._packets.remote_port(socket)), self._addresses(socket, family))
        last = _STATES.get(old, _CLOSED) + _BIAS
        return (0, socket, 0, socket, 0, last, *self._connection(socket, ends, _STATES.get(new, _CLOSED)))

    def _arrived(self, buffer: int, socket: int, state: int | None = None) -> Sequence[int] | None:
        packet = self._packets.read(buffer) if buffer else None
        return None if packet is None else self._told(packet, socket, state, is_leaving=False)

    def _told(self, packet: Packet, socket: int, state: int | None = None, *, is_leaving: bool) -> Sequence[int]:
        numbers = [self._packets.big_endian(packet.carried + at, 2) for at in (0, 2)]
        ports, addresses = (numbers[0], numbers[1]), (packet.source, packet.destination)
        if not is_leaving:
            ports, addresses = ports[::-1], addresses[::-1]
        ends = _Ends(packet.family, ports, addresses)
        now = self._state(socket) if state is None else state
        return (
            *(packet.buffer, socket, packet.ip, socket, packet.carried, now + _BIAS),
            *self._connection(socket, ends, now),
        )

    def _connection(self, socket: int, ends: _Ends, state: int) -> Sequence[int]:
        local, remote = ends.ports
        facts = (state + _BIAS) << 48 | ends.family << 32 | local << 16 | remote
        return (facts, socket if self._is_whole(socket, local) else 0, *ends.addresses)

    def _addresses(self, socket: int, family: int) -> tuple[int, int]:
        names = ("skc_v6_rcv_saddr", "skc_v6_daddr") if family == INET6 else ("skc_rcv_saddr", "skc_daddr")
        first, second = (self._packets.member(socket, SOCKET, COMMON, name) for name in names)
        return first, second

    def _state(self, socket: int) -> int:
        return _STATES.get(self._packets.common(socket, "skc_state"), _CLOSED)

    def _is_whole(self, socket: int, port: int) -> bool:
        """Whether a socket is that of the connection: requests, and what is left at the end, are no whole ones, and
        answers that belong to none go through one of the machine's own, without a port."""
        state = self._packets.common(socket, "skc_state")
        has_port = port and self._packets.common(socket, "skc_num") == port
        return bool(has_port) and state not in (_TIME_WAIT, _NEW_SYN_RECV)

    def _has(self, packet: Packet, wanted: int) -> bool:
        if packet.protocol != TCP:
            return False
        flags = self._packets.big_endian(packet.carried + _FLAGS, 1)
        return flags & (_SYN | _RST | _FIN | _ACK) == wanted


def tcp_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_tcp(4). Without the types of sockets they cannot be read: then it has no probes."""
    if host.types.type_named(SOCKET) is None:
        return EventsProvider("tcp", (), host)
    packets, tcp = Packets(host), _Connections(host)
    known = *leaving(packets, tcp.seen), tracepoint(_STATE, tcp.seen_to_change)
    received = function("tcp_v4_rcv", tcp.received), function("tcp_v6_rcv", tcp.received), *known
    places = {
        "send": leaving(packets, tcp.sent),
        "receive": received,
        "connect-request": leaving(packets, tcp.requested),
        "connect-established": (function("tcp_finish_connect", tcp.connected),),
        "connect-refused": (function("tcp_reset", tcp.was_refused),),
        "accept-established": (function("tcp_child_process", tcp.accepted),),
        "accept-refused": leaving(packets, tcp.refused),
        "state-change": (tracepoint(_STATE, tcp.changed),),
    }
    return EventsProvider("tcp", tuple(Event(name, at, _ARGUMENTS) for name, at in places.items()), host)
