"""PL011 UART: the registers of Arm's PrimeCell UART (DDI 0183) -> console bytes and an interrupt.

Sending takes no time. Baud rates, modem lines, DMA and loopback have no effect.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.device import Clock, Line
from kinst.runtime.machine.devices.primecell import identification

# Register offsets (DDI 0183 table 3-1).
DR, RSR, FR, ILPR, IBRD, FBRD, LCR_H, CR, IFLS, IMSC, RIS, MIS, ICR, DMACR = (
    0x00, 0x04, 0x18, 0x20, 0x24, 0x28, 0x2C, 0x30, 0x34, 0x38, 0x3C, 0x40, 0x44, 0x48,
)  # fmt: skip
_KEPT: Final = {ILPR: 0xFF, IBRD: 0xFFFF, FBRD: 0x3F, IFLS: 0x3F, DMACR: 0x7}  # stored, masked, without effect

FR_TXFE, FR_RXFF, FR_RXFE = 1 << 7, 1 << 6, 1 << 4
LCR_FEN = 1 << 4  # FIFOs enabled
INTERRUPT_RX, INTERRUPT_TX, INTERRUPT_RT = 1 << 4, 1 << 5, 1 << 6
_INTERRUPTS: Final = 0x7FF

_FIFO_SIZE: Final = 16
POLL_INTERVAL: Final = 10_000_000  # ns between two looks at the keyboard while the guest waits for an interrupt


@dataclass(slots=True)
class Pl011:
    """One UART. `output` gets what the guest sends; `keyboard` gives what was typed since its last call."""

    clock: Clock
    output: Callable[[bytes], None]
    keyboard: Callable[[], bytes]
    line: Line
    size: int = 0x1000

    _received: deque[int] = field(default_factory=deque, init=False)
    _waiting: deque[int] = field(default_factory=deque, init=False)  # typed bytes for which the FIFO has no room yet
    _kept: dict[int, int] = field(default_factory=lambda: {IFLS: 0x12}, init=False)
    _line_control: int = field(default=0, init=False)
    _control: int = field(default=0x300, init=False)
    _raw: int = field(default=0, init=False)
    _mask: int = field(default=0, init=False)
    _next_poll: int = field(default=0, init=False)

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
            case 0x2C:
                self._line_control = value & 0xFF
            case 0x30:
                self._control = value & 0xFFFF
            case 0x38:
                self._mask = value & _INTERRUPTS
            case 0x44:
                self._raw &= ~value
            case _ if offset in _KEPT:
                self._kept[offset] = value & _KEPT[offset]
            case _:
                return
        self._update()

    def deadline(self) -> int | None:
        """When to look at the keyboard next, in ns; None unless a received byte would interrupt."""
        return self._next_poll if self._mask & (INTERRUPT_RX | INTERRUPT_RT) else None

    def advance(self) -> None:
        """Look at the keyboard."""
        if self.clock.now() >= self._next_poll:
            self._next_poll = self.clock.now() + POLL_INTERVAL
            self._receive()

    def _register(self, register: int) -> int:
        if register == DR:
            return self._take()
        if register == FR:
            self._receive()
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
        depth = _FIFO_SIZE if self._line_control & LCR_FEN else 1
        full = FR_RXFF if len(self._received) >= depth else 0
        return FR_TXFE | full | (0 if self._received else FR_RXFE)

    def _take(self) -> int:
        self._receive()
        value = self._received.popleft() if self._received else 0
        if not self._received:
            self._raw &= ~(INTERRUPT_RX | INTERRUPT_RT)
        self._receive()
        self._update()
        return value

    def _receive(self) -> None:
        """Fill the FIFO from the keyboard. The timeout that reports a FIFO below its trigger level expires at once."""
        self._waiting.extend(self.keyboard())
        depth = _FIFO_SIZE if self._line_control & LCR_FEN else 1
        while self._waiting and len(self._received) < depth:
            self._received.append(self._waiting.popleft())
            self._raw |= INTERRUPT_RX | INTERRUPT_RT
        self._update()

    def _update(self) -> None:
        self.line(bool(self._raw & self._mask))
