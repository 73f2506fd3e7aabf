"""UARTs of Qualcomm's chips, whose drivers say how many bytes follow and then write words of several.

Sending takes no time, a command is done at once, and no interrupts are raised. A word that is received has one byte.

    geni-uart    (Linux, qcom_geni_serial.c)    0x270 bytes of a command   0x260, 0x264 where a word's last byte is
                                                0x700 TX FIFO  0x780 RX FIFO  0x804 words in it
    msm-uartdm   (APQ8016 manual, BLSP UART)    0x40 NCF_TX  0x100 TF  0x140 RF  0x50 RXFS  0xa4 SR  0xb4 ISR
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.devices.uarts.fifo_uart import Always, FifoUart, Status, UartLayout
from kinst.runtime.machine.serial_line import SerialLine
from kinst.targets.values import dataclass

_WORD: Final = 4
_ALL: Final = (1 << 32) - 1
_ONE_BYTE: Final = 1 << 31 | 1 << 28 | 1  # of geni's RX_FIFO_STATUS: a last word, one valid byte in it, one word
_DONE: Final = 1 << 30 | 1 << 5 | 1 << 4 | 1  # TX watermark, abort, cancel, command: what drivers poll for


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """`count`: the register of how many bytes follow. `packing`: two registers of two 10-bit entries each, one for a
    byte of a word; the lowest bit says that it is the last. None: a word has four bytes."""

    registers: UartLayout
    count: int
    packing: tuple[int, int] | None = None


PACKED: Final = {
    "geni-uart": PackedLayout(
        UartLayout(
            0x4000,
            0x700,
            0x780,
            {
                0x40: Status(0, 0),  # no command is active
                0x68: Status(2 << 8, 2 << 8),  # the firmware's protocol: UART
                0x610: Status(_DONE, _DONE),
                0x640: Status(_DONE, _DONE),
                0x800: Status(0, 0),
                0x804: Status(0, _ONE_BYTE),
                0xE24: Status(32 << 24 | 16 << 16, 32 << 24 | 16 << 16),  # 16 words of 32 bits
                0xE28: Status(32 << 24 | 16 << 16, 32 << 24 | 16 << 16),
            },
            always={0x604: Always(clear=_ALL), 0x634: Always(clear=_ALL)},  # cancelled and aborted at once
        ),
        count=0x270,
        packing=(0x260, 0x264),
    ),
    "msm-uartdm": PackedLayout(
        UartLayout(
            0x200, 0x100, 0x140, {0x50: Status(0, 1 << 7), 0xA4: Status(0xC, 0xC), 0xB4: Status(1 << 7, 1 << 7)}
        ),
        count=0x40,
    ),
}


class PackedUart(FifoUart):
    """One UART. `output` gets what the guest sends; it receives from `serial_line`."""

    def __init__(self, layout: PackedLayout, output: Callable[[bytes], None], serial_line: SerialLine) -> None:
        """Nothing is sent or received yet."""
        super().__init__(layout.registers, output, serial_line)
        self._packed, self._left = layout, 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Send the bytes of a word, or keep a value."""
        if offset == self._packed.count:
            self._left = value
        if offset != self._packed.registers.send:
            super().write(offset, size, value)
            return
        sent = min(self._in_word(), self._left)
        self._left -= sent
        for at in range(sent):
            super().write(offset, 1, value >> 8 * at)

    def _in_word(self) -> int:
        packing = self._packed.packing
        if packing is None:
            return _WORD
        ends = [self.read(register, _WORD) >> shift & 1 for register in packing for shift in (0, 10)]
        return ends.index(1) + 1 if 1 in ends else _WORD
