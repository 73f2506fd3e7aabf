"""16550 UART: the guest's register accesses -> console bytes and an interrupt line.

National Semiconductor PC16550D. Transmission takes no time, so the transmitter is always empty. Input arrives in a FIFO
without a limit. Registers are one byte wide and adjacent, as on a PC and on QEMU's virt.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from kinst.runtime.machine.device import Line

if TYPE_CHECKING:
    from kinst.runtime.machine.machine import Machine

# Offsets of registers. The divisor's are used while LCR.DLAB is set.
_DATA, _IER, _IIR_FCR, _LCR, _MCR, _LSR, _MSR, _SCRATCH = range(8)
_DLAB: Final = 0x80
_IER_RECEIVED, _IER_EMPTY = 0x01, 0x02
_IIR_NONE, _IIR_EMPTY, _IIR_RECEIVED, _IIR_FIFOS = 0x01, 0x02, 0x04, 0xC0
_FCR_ENABLE, _FCR_CLEAR_RECEIVER = 0x01, 0x02
_LSR_DATA_READY, _LSR_THR_EMPTY, _LSR_IDLE = 0x01, 0x20, 0x40
_MCR_LOOPBACK: Final = 0x10
_MSR_CARRIER_READY: Final = 0xB0  # DCD, DSR, CTS
_POLL: Final = 20_000_000  # ns between two looks at the keyboard


class Uart16550:
    """The UART: a device with registers of one byte, and a `Timed` one."""

    size = 8

    def __init__(self, machine: "Machine", line: Line) -> None:
        """`line` is driven high while an enabled interrupt is pending."""
        self._machine = machine
        self._line = line
        self._received: deque[int] = deque()
        self._divisor = bytearray((12, 0))
        self._registers = bytearray(8)
        self._is_empty_pending = False
        self._next_poll = 0

    def deadline(self) -> int | None:
        """When to look for input again, in ns; None while no interrupt waits for it, since reads of LSR look by
        themselves."""
        return self._next_poll if self._registers[_IER] & _IER_RECEIVED else None

    def advance(self) -> None:
        """Look for input."""
        self._next_poll = self._machine.clock.now() + _POLL
        self._receive()

    def read(self, offset: int, size: int) -> int:
        """One register, of one byte."""
        if self._registers[_LCR] & _DLAB and offset in (_DATA, _IER):
            return self._divisor[offset]
        match offset:
            case 0:
                value = self._received.popleft() if self._received else 0
                self._update()
                return value
            case 2:
                return self._identify()
            case 5:
                self._receive()
                return _LSR_THR_EMPTY | _LSR_IDLE | (_LSR_DATA_READY if self._received else 0)
            case 6:
                return self._modem_status()
            case _:
                return self._registers[offset]

    def write(self, offset: int, size: int, value: int) -> None:
        """Write one register, of one byte."""
        value &= 0xFF
        if self._registers[_LCR] & _DLAB and offset in (_DATA, _IER):
            self._divisor[offset] = value
            return
        match offset:
            case 0:
                self._send(value)
            case 1:
                # Enabling the interrupt raises it, since the transmitter is empty (PC16550D 8.4).
                self._is_empty_pending = bool(value & _IER_EMPTY)
                self._registers[_IER] = value & 0x0F
            case 2:
                self._registers[_IIR_FCR] = value & _FCR_ENABLE
                if value & _FCR_CLEAR_RECEIVER:
                    self._received.clear()
            case 5 | 6:
                return
            case _:
                self._registers[offset] = value
        self._update()

    def _send(self, value: int) -> None:
        if self._registers[_MCR] & _MCR_LOOPBACK:
            self._received.append(value)
        else:
            self._machine.console_output(bytes((value,)))
        self._is_empty_pending = True

    def _receive(self) -> None:
        typed = self._machine.console_input()
        if typed:
            self._received.extend(typed)
            self._update()

    def _identify(self) -> int:
        fifos = _IIR_FIFOS if self._registers[_IIR_FCR] & _FCR_ENABLE else 0
        pending = self._pending()
        if pending == _IIR_EMPTY:
            self._is_empty_pending = False  # reading IIR acknowledges it
            self._update()
        return pending | fifos

    def _pending(self) -> int:
        enabled = self._registers[_IER]
        if enabled & _IER_RECEIVED and self._received:
            return _IIR_RECEIVED
        if enabled & _IER_EMPTY and self._is_empty_pending:
            return _IIR_EMPTY
        return _IIR_NONE

    def _modem_status(self) -> int:
        """MSR. In loopback the modem inputs CTS, DSR, RI and DCD show the outputs RTS, DTR, OUT1 and OUT2."""
        control = self._registers[_MCR]
        if not control & _MCR_LOOPBACK:
            return _MSR_CARRIER_READY
        return (control & 2) << 3 | (control & 1) << 5 | (control & 4) << 4 | (control & 8) << 4

    def _update(self) -> None:
        self._line(self._pending() != _IIR_NONE)
