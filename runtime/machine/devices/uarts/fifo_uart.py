"""UARTs of systems-on-chip whose drivers write a byte to one register, read one from another and ask a third how it is.

Sending takes no time. Interrupts are not raised: firmware polls. What else is written is kept.

    cdns-uart    (Zynq-7000, UG585 B.33)     0x30 FIFO    0x30 FIFO    0x2c SR: 1 RX empty  3 TX empty
    exynos-uart  (Exynos 4412 manual, 28)    0x20 UTXH    0x24 URXH    0x10 UTRSTAT: 0 RX ready  1 2 TX empty  0x18
    imx-uart     (i.MX 8M manual, 16.2)      0x40 UTXD    0x0 URXD     0x94 USR1  0x98 USR2  0xb4 UTS
    lpuart       (i.MX 8ULP manual)          0x1c DATA    0x1c DATA    0x14 STAT: 21 RX full  22 TX done  23 TX empty
    meson-uart   (Amlogic S905 datasheet)    0x0 WFIFO    0x4 RFIFO    0xc STATUS: 20 RX empty  21 TX full  22 TX empty
    mvebu-uart   (Armada 3700 manual)        0x4 TSH      0x0 RBR      0xc STAT: 4 RX ready  5 TX ready  6 TX empty
    sifive-uart  (FU540-C000 manual, 13)     0x0 txdata   0x4 rxdata   each: 31 full or empty; 0x14 ip: 0 txwm  1 rxwm
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from kinst.runtime.machine.devices.receiver import Receiver
from kinst.runtime.machine.serial_line import SerialLine
from kinst.targets.values import dataclass

_EMPTY: Final = 1 << 31  # of SiFive's rxdata


@dataclass(frozen=True, slots=True)
class Status:
    """What a status register gives with nothing received (`idle`), and with something."""

    idle: int
    ready: int


@dataclass(frozen=True, slots=True)
class Always:
    """Bits of a register that read as set or clear whatever was written: a reset that is over at once."""

    set: int = 0
    clear: int = 0


_NOTHING: Final = Always()


@dataclass(frozen=True, slots=True)
class UartLayout:
    """The registers of a UART, by offset."""

    size: int
    send: int
    receive: int
    statuses: Mapping[int, Status]
    empty: int = 0  # what the receive register gives when there is nothing
    valid: int = 0  # bits beside a byte that was received
    always: Mapping[int, Always] = field(default_factory=dict)
    is_polled_by_data: bool = False  # whether drivers read the receive register to know if something came


LAYOUTS: Final = {
    "cdns-uart": UartLayout(0x1000, 0x30, 0x30, {0x2C: Status(1 << 3 | 1 << 1, 1 << 3)}, always={0x0: Always(clear=3)}),
    "exynos-uart": UartLayout(0x100, 0x20, 0x24, {0x10: Status(6, 7), 0x18: Status(0, 1)}),
    "imx-uart": UartLayout(
        0x4000,
        0x40,
        0x0,
        {
            0x94: Status(1 << 13, 1 << 13 | 1 << 9),  # TRDY, RRDY
            0x98: Status(1 << 14 | 1 << 3, 1 << 14 | 1 << 3 | 1),  # TXFE, TXDC, RDR
            0xB4: Status(1 << 6 | 1 << 5, 1 << 6),  # TXEMPTY, RXEMPTY
        },
        valid=1 << 15,  # CHARRDY
        always={0x84: Always(set=1)},  # UCR2: SRST is clear while the reset is under way
    ),
    "lpuart": UartLayout(0x1000, 0x1C, 0x1C, {0x14: Status(3 << 22, 7 << 21)}, empty=1 << 12),  # RXEMPT
    "meson-uart": UartLayout(0x18, 0x0, 0x4, {0xC: Status(1 << 22 | 1 << 20, 1 << 22)}),
    "mvebu-uart": UartLayout(0x18, 0x4, 0x0, {0xC: Status(1 << 6 | 1 << 5, 1 << 6 | 1 << 5 | 1 << 4)}),
    "sifive-uart": UartLayout(0x1000, 0x0, 0x4, {0x14: Status(1, 3)}, empty=_EMPTY, is_polled_by_data=True),
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
        elif offset != self._layout.receive and offset not in self._layout.statuses:
            self._kept[offset & ~3] = value

    def _register(self, register: int) -> int:
        layout = self._layout
        if register == layout.receive:
            return self._received()
        status = layout.statuses.get(register)
        if status is not None:
            self._receiver.polled()
            return status.ready if self._receiver else status.idle
        if register == layout.send:
            return 0
        always = layout.always.get(register, _NOTHING)
        return self._kept.get(register, 0) & ~always.clear | always.set

    def _received(self) -> int:
        if self._layout.is_polled_by_data:
            self._receiver.polled()
        return self._receiver.read() | self._layout.valid if self._receiver else self._layout.empty
