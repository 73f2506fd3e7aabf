"""Which socket a TCP segment is for, before the kernel looks for it: by what was seen of sockets in this run."""

from typing import Final

from kinst.runtime.providers.linux.packets import INET, Packet, Packets

_LISTEN, _CLOSED = 10, 7
_PORT: Final = 2
Ends = tuple[int, int, bytes, bytes]  # local and remote port, addresses


class KnownSockets:
    """Sockets by their connections, and those that listen by their port."""

    def __init__(self, packets: Packets) -> None:
        """None is known."""
        self._packets = packets
        self._connected: dict[Ends, int] = {}
        self._listening: dict[int, int] = {}

    def changed(self, socket: int, state: int) -> None:
        """A socket gets a state: from now on it listens, or no longer does."""
        port = self._packets.common(socket, "skc_num")
        if state == _LISTEN:
            self._listening[port] = socket
        elif state == _CLOSED and self._listening.get(port) == socket:
            del self._listening[port]

    def sent(self, packet: Packet, socket: int) -> None:
        """A socket sends a segment."""
        local, remote = (self._packets.big_endian(packet.carried + at, _PORT) for at in (0, _PORT))
        if local and self._packets.common(socket, "skc_num") == local:
            self._connected[local, remote, *self._addresses(packet)] = socket

    def of(self, packet: Packet) -> int:
        """The socket that a segment which arrives is for; 0 if it is not known."""
        remote, local = (self._packets.big_endian(packet.carried + at, _PORT) for at in (0, _PORT))
        theirs, ours = self._addresses(packet)
        socket = self._connected.get((local, remote, ours, theirs), 0)
        # Its memory may be another socket's by now.
        if socket and (self._packets.common(socket, "skc_num"), self._packets.remote_port(socket)) == (local, remote):
            return socket
        return self._listening.get(local, 0)

    def _addresses(self, packet: Packet) -> tuple[bytes, bytes]:
        size = 4 if packet.family == INET else 16
        return self._packets.content(packet.source, size), self._packets.content(packet.destination, size)
