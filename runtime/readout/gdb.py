"""A gdb stub, such as QEMU's or OpenOCD's -> the memory of its guest, which is halted while it is read.

To connect halts the guest; to detach lets it go on. QEMU would also start one that has not begun (-S): that one is left
alone. Virtual addresses are those of the CPU that the stub chooses. QEMU can be asked for physical ones.
"""

import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.runtime.readout.packets import LONGEST, Packets, Patience, StubError
from kinst.targets.errors import MachineError
from kinst.targets.visible import visible

_LONGEST_TEXT: Final = 1 << 16  # characters of what a monitor prints; QEMU's is a line
_PATIENCE: Final = Patience()
_LEAST: Final = 0.1  # seconds to connect, if there is no time left at all
_SMALLEST: Final = 400  # bytes of a packet, if the stub does not say how many it takes
_PHYSICAL: Final = "Qqemu.PhyMemMode:"
_NOT_BEGUN: Final = "prelaunch"  # what QEMU's monitor calls a guest that -S holds


class GdbStub:
    """A stub at a host's port; implements `kinst.runtime.readout.memory.Source`."""

    is_live = True

    def __init__(self, host: str, port: int, patience: Patience = _PATIENCE) -> None:
        """Nothing is connected yet."""
        self.name = f"gdb:{host}:{port}"
        self._place = host, port
        self._patience = patience

    @contextmanager
    def open(self) -> Iterator[Memory]:
        """See `Source`."""
        try:
            left = max(_LEAST, min(self._patience.reply, self._patience.end - time.monotonic()))
            connection = socket.create_connection(self._place, left)
        except OSError as error:
            why = "no answer" if isinstance(error, TimeoutError) else error.strerror
            raise MachineError(f"{self.name}: cannot connect: {why}") from None
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            packets = Packets(self.name, connection, self._patience)
            try:
                guest = _HaltedGuest(self.name, packets)
                yield guest
            except StubError:
                packets.send_last("D")  # whatever it means, the guest shall not be left halted
                raise
            except BaseException:
                guest.leave()
                raise
            guest.leave()


class _HaltedGuest:
    """The guest while a stub holds it; implements `kinst.runtime.readout.memory.Memory`."""

    def __init__(self, name: str, packets: Packets) -> None:
        self._name, self._packets = name, packets
        offered = dict(one.partition("=")[::2] for one in packets.ask("qSupported").split(";"))
        size = offered.get("PacketSize", "")
        limit = int(size, 16) if re.fullmatch(r"[0-9a-fA-F]{1,8}", size) else _SMALLEST
        # In bytes of memory: each is two digits of a reply, and the frame ($, #, checksum) takes less than 8 more.
        self._most = max(8, (min(limit, LONGEST) - 8) // 2)
        if "QStartNoAckMode+" in offered and packets.ask("QStartNoAckMode") == "OK":
            packets.stop_acknowledging()
        reason = packets.ask("?")
        if reason[:1] not in ("S", "T"):
            raise StubError(f"{name}: its guest is not halted, and cannot be read ({_shown(reason) or 'no answer'})")
        self.is_slow = True
        self._is_physical = False
        knows_physical = packets.ask("qqemu.PhyMemMode") == "0"
        self.spaces: Sequence[Space] = (Space.VIRTUAL, Space.PHYSICAL) if knows_physical else (Space.VIRTUAL,)

    def leave(self) -> None:
        """Let the guest continue as before."""
        self._packets.hurry()
        if self._is_physical:  # QEMU would keep the mode for the next debugger
            self._packets.ask(f"{_PHYSICAL}0")
        if not self._has_not_begun():
            self._packets.ask("D")

    def _has_not_begun(self) -> bool:
        """Whether QEMU's monitor, if there is one, says that -S holds it: then `D` would start it."""
        text, reply = "", self._packets.ask("qRcmd," + b"info status".hex())
        while re.fullmatch(r"O([0-9a-fA-F]{2})+", reply):
            text += bytes.fromhex(reply[1:]).decode("latin-1")
            if len(text) > _LONGEST_TEXT:
                raise StubError(f"{self._name}: its monitor prints more than {_LONGEST_TEXT:,} characters")
            reply = self._packets.reply()
        return _NOT_BEGUN in text

    def read(self, space: Space, address: int, size: int) -> bytes:
        """See `Memory`."""
        self._enter(space)
        found = bytearray()
        while len(found) < size:
            some = self._some(space, address + len(found), min(size - len(found), self._most))
            self._packets.earn(len(some))
            found += some
        return bytes(found)

    def _enter(self, space: Space) -> None:
        is_physical = space is Space.PHYSICAL
        if is_physical != self._is_physical:
            if self._packets.ask(f"{_PHYSICAL}{int(is_physical)}") != "OK":
                raise StubError(f"{self._name}: does not read physical memory")
            self._is_physical = is_physical

    def _some(self, space: Space, address: int, size: int) -> bytes:
        """At least one byte of memory, at most `size`: a stub may return less where it cannot read on."""
        reply = self._packets.ask(f"m{address:x},{size:x}")
        # An error is `E` and two digits, or `E.` and text; empty: the stub has no `m`. Memory that begins with 0xe? is
        # not mistaken for one: it has an even number of digits.
        if re.fullmatch(r"E..|E\.[^#]*|", reply):
            why = _shown(reply) or "no m"
            raise UnreadableError(f"{self._name}: cannot read {space.value} address {address:#x} ({why})")
        if not re.fullmatch(r"([0-9a-fA-F]{2})+", reply) or len(reply) > 2 * size:
            raise StubError(f"{self._name}: {address:#x}: a reply that is not in the protocol ({_shown(reply)})")
        return bytes.fromhex(reply)

    def find(self, content: bytes) -> Iterator[int]:
        """Nothing: searching all memory would halt the guest for long."""
        return iter(())


def _shown(reply: str) -> str:
    """The beginning of a reply, for a message."""
    return visible(reply[:40])
