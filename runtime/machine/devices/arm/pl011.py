"""PL011 UART: the registers of Arm's PrimeCell UART (DDI 0183) -> console bytes and an interrupt.

Sending takes no time. Baud rates, modem lines, DMA and loopback have no effect.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.arm.primecell import identification
from kinst.runtime.machine.devices.receiver import Receiver
from kinst.runtime.machine.serial_line import SerialLine

# Register offsets (DDI 0183 table 3-1).
DR, RSR, FR, ILPR, IBRD, FBRD, LCR_H, CR, IFLS, IMSC, RIS, MIS, ICR, DMACR = (
    0x00, 0x04, 0x18, 0x20, 0x24, 0x28, 0x2C, 0x30, 0x34, 0x38, 0x3C, 0x40, 0x44, 0x48,
)  # fmt: skip
_KEPT: Final = {ILPR: 0xFF, IBRD: 0xFFFF, FBRD: 0x3F, IFLS: 0x3F, DMACR: 0x7}  # stored, masked, without effect

FR_TXFE, FR_RXFF, FR_RXFE = 1 << 7, 1 << 6, 1 << 4
LCR_FEN = 1 << 4  # FIFOs enabled
INTERRUPT_RX, INTERRUPT_TX, INTERRUPT_RT = 1 << 4, 1 << 5, 1 << 6
_INTERRUPTS: Final = 0x7FF

_RECEIVED: Final = INTERRUPT_RX | INTERRUPT_RT  # the timeout of a FIFO below its trigger level expires at once

_FIFO_SIZE: Final = 16


@dataclass(slots=True)
class Pl011:
    """One UART. `output` gets what the guest sends; it receives from `serial_line`; `line` is its interrupt."""

    output: Callable[[bytes], None]
    serial_line: SerialLine
    line: Line
    size: int = 0x1000

    _receiver: Receiver = field(init=False)
    _kept: dict[int, int] = field(default_factory=lambda: {IFLS: 0x12}, init=False)
    _line_control: int = field(default=0, init=False)
    _control: int = field(default=0x300, init=False)
    _raw: int = field(default=0, init=False)
    _mask: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Connect the serial line."""
        self._receiver = Receiver(self.serial_line, self._received)

    def read(self, offset: int, size: int) -> int:
        """A register, or the part of it that is accessed."""
        register = offset & ~3
        return self._register(register) >> (offset - register) * 8 & (1 << size * 8) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register. Drivers write DR by the byte."""
        match offset:
            case 0x00:
                self.output(bytes((value & 0xFF,)))
                self._raw |= INTERRUPT_TX
                self._receiver.sent()
            case 0x2C:
                self._line_control = value & 0xFF
                self._receiver.reset(_FIFO_SIZE if value & LCR_FEN else 1)  # a holding register of one byte
            case 0x30:
                self._control = value & 0xFFFF
            case 0x38:
                self._mask = value & _INTERRUPTS
                self._receiver.interrupt(is_enabled=bool(value & _RECEIVED))
            case 0x44:
                self._raw &= ~value
            case _ if offset in _KEPT:
                self._kept[offset] = value & _KEPT[offset]
            case _:
                return
        self._update()

    def _register(self, register: int) -> int:
        if register == DR:
            return self._receiver.read()
        if register == FR:
            self._receiver.polled()
            return self._flags()
        if register >= 0xFE0:
            return identification(0x011, 1, register)
        registers = {
            LCR_H: self._line_control,
            CR: self._control,
            IMSC: self._mask,
            RIS: self._raw,
            MIS: self._raw & self._mask,
        }
        return registers.get(register, self._kept.get(register, 0))

    def _flags(self) -> int:
        """The flag register. The transmitter is always empty and never busy."""
        full = FR_RXFF if self._receiver.is_full else 0
        return FR_TXFE | full | (0 if self._receiver else FR_RXFE)

    def _received(self) -> None:
        self._raw = self._raw | _RECEIVED if self._receiver else self._raw & ~_RECEIVED
        self._update()

    def _update(self) -> None:
        self.line(bool(self._raw & self._mask))
