"""UARTs of systems-on-chip whose drivers write a byte to one register, read one from another and ask a third how it is.

Sending takes no time. Interrupts are not raised: firmware polls. What else is written is kept.

    meson-uart  (Amlogic S905 datasheet)      0x0 WFIFO   0x4 RFIFO   0xc STATUS: 20 RX empty  21 TX full  22 TX empty
    mvebu-uart  (Armada 3700 specification)   0x4 TSH     0x0 RBR     0xc STAT: 4 RX ready  5 TX ready  6 TX empty
    sifive-uart (FU540-C000 manual, 13)       0x0 txdata  0x4 rxdata  each: 31 full or empty; 0x14 ip: 0 txwm  1 rxwm
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kinst.runtime.machine.devices.receiver import Receiver
from kinst.runtime.machine.serial_line import SerialLine

_EMPTY: Final = 1 << 31  # of SiFive's rxdata


@dataclass(frozen=True, slots=True)
class UartLayout:
    """The registers of a UART, by offset. `idle` is the status with nothing received, `ready` with something."""

    size: int
    send: int
    receive: int
    status: int
    idle: int
    ready: int
    empty: int | None = None  # what the receive register gives when there is nothing; None: nothing is lost by 0
    is_polled_by_data: bool = False  # whether drivers read the receive register to know if something came


LAYOUTS: Final = {
    "meson-uart": UartLayout(0x18, 0x0, 0x4, 0xC, 1 << 22 | 1 << 20, 1 << 22),
    "mvebu-uart": UartLayout(0x18, 0x4, 0x0, 0xC, 1 << 6 | 1 << 5, 1 << 6 | 1 << 5 | 1 << 4),
    "sifive-uart": UartLayout(0x1000, 0x0, 0x4, 0x14, 1, 3, empty=_EMPTY, is_polled_by_data=True),
}


class FifoUart:
    """One UART. `output` gets what the guest sends; it receives from `serial_line`."""

    def __init__(self, layout: UartLayout, output: Callable[[bytes], None], serial_line: SerialLine) -> None:
        """Nothing is sent or received yet."""
        self.size = layout.size
        self._layout, self._output = layout, output
        self._receiver = Receiver(serial_line, lambda: None)
        self._kept: dict[int, int] = {}

    def read(self, offset: int, size: int) -> int:
        """A register, or the part of it that is accessed."""
        register = offset & ~3
        return self._register(register) >> 8 * (offset - register) & (1 << 8 * size) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """Send a byte, or keep a value."""
        if offset == self._layout.send:
            self._output(bytes((value & 0xFF,)))
            self._receiver.sent()
        elif offset not in (self._layout.receive, self._layout.status):
            self._kept[offset & ~3] = value

    def _register(self, register: int) -> int:
        layout = self._layout
        if register == layout.receive:
            return self._received()
        if register == layout.status:
            self._receiver.polled()
            return layout.ready if self._receiver else layout.idle
        return 0 if register == layout.send else self._kept.get(register, 0)

    def _received(self) -> int:
        if self._layout.is_polled_by_data:
            self._receiver.polled()
        if not self._receiver and self._layout.empty is not None:
            return self._layout.empty
        return self._receiver.read()
