"""16550 UART: the guest's register accesses -> console bytes and an interrupt line.

National Semiconductor PC16550D. Transmission takes no time, so the transmitter is always empty. The timeout of a
receiver below its trigger level expires at once. Registers are one byte wide and adjacent, as on a PC and on QEMU's
virt.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.receiver import Receiver
from kinst.runtime.machine.serial_line import SerialLine

# Offsets of registers. The divisor's are used while LCR.DLAB is set.
_DATA, _IER, _IIR_FCR, _LCR, _MCR, _LSR, _MSR, _SCRATCH = range(8)
_DLAB: Final = 0x80
_IER_RECEIVED, _IER_EMPTY = 0x01, 0x02
_IIR_NONE, _IIR_EMPTY, _IIR_RECEIVED, _IIR_TIMEOUT, _IIR_FIFOS = 0x01, 0x02, 0x04, 0x0C, 0xC0
_FCR_ENABLE, _FCR_CLEAR_RECEIVER = 0x01, 0x02
_TRIGGERS: Final = (1, 4, 8, 14)  # received bytes that interrupt, by bits 6 and 7 of FCR
_DEPTH: Final = 16
_LSR_DATA_READY, _LSR_THR_EMPTY, _LSR_IDLE = 0x01, 0x20, 0x40
_MCR_LOOPBACK: Final = 0x10
_MSR_CARRIER_READY: Final = 0xB0  # DCD, DSR, CTS


class Terminal(Protocol):
    """What is at the other end of the line: a machine, for its console."""

    @property
    def serial_line(self) -> SerialLine:
        """The source of what it sends."""
        ...

    @property
    def console_output(self) -> Callable[[bytes], None]:
        """Takes what the guest sends."""
        ...


class Uart16550:
    """The UART: a device with registers of one byte."""

    size = 8

    def __init__(self, machine: Terminal, line: Line) -> None:
        """`line` is driven high while an enabled interrupt is pending."""
        self._machine = machine
        self._line = line
        self._looped: deque[int] = deque()  # sent in loopback
        self._receiver = Receiver(machine.serial_line, self._update)
        self._fifo_control = 0
        self._divisor = bytearray((12, 0))
        self._registers = bytearray(8)
        self._is_empty_pending = False

    def read(self, offset: int, size: int) -> int:
        """One register, of one byte."""
        if self._registers[_LCR] & _DLAB and offset in (_DATA, _IER):
            return self._divisor[offset]
        match offset:
            case 0:
                return self._take()
            case 2:
                return self._identify()
            case 5:
                self._receiver.polled()
                return _LSR_THR_EMPTY | _LSR_IDLE | (_LSR_DATA_READY if self._is_ready else 0)
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
                self._receiver.interrupt(is_enabled=bool(value & _IER_RECEIVED))
            case 2:
                self._control_fifos(value)
            case 5 | 6:
                return
            case _:
                self._registers[offset] = value
        self._update()

    def _control_fifos(self, value: int) -> None:
        """FCR. To switch the FIFOs on or off clears them (PC16550D 8.6.5)."""
        if value & _FCR_CLEAR_RECEIVER or (value ^ self._fifo_control) & _FCR_ENABLE:
            self._looped.clear()
            self._receiver.reset(_DEPTH if value & _FCR_ENABLE else 1)
        self._fifo_control = value

    def _send(self, value: int) -> None:
        if self._registers[_MCR] & _MCR_LOOPBACK:
            self._looped.append(value)
        else:
            self._machine.console_output(bytes((value,)))
            self._receiver.sent()
        self._is_empty_pending = True

    @property
    def _is_ready(self) -> bool:
        return bool(self._looped or self._receiver)

    def _take(self) -> int:
        if not self._looped:
            return self._receiver.read()
        value = self._looped.popleft()
        self._update()
        return value

    def _identify(self) -> int:
        fifos = _IIR_FIFOS if self._fifo_control & _FCR_ENABLE else 0
        pending = self._pending()
        if pending == _IIR_EMPTY:
            self._is_empty_pending = False  # reading IIR acknowledges it
            self._update()
        return pending | fifos

    def _pending(self) -> int:
        enabled = self._registers[_IER]
        if enabled & _IER_RECEIVED and self._is_ready:
            return _IIR_TIMEOUT if len(self._receiver) < self._trigger else _IIR_RECEIVED
        if enabled & _IER_EMPTY and self._is_empty_pending:
            return _IIR_EMPTY
        return _IIR_NONE

    @property
    def _trigger(self) -> int:
        """How many received bytes interrupt by themselves; fewer do it by the timeout, which only FIFOs have."""
        return _TRIGGERS[self._fifo_control >> 6 & 3] if self._fifo_control & _FCR_ENABLE else 0

    def _modem_status(self) -> int:
        """MSR. In loopback the modem inputs CTS, DSR, RI and DCD show the outputs RTS, DTR, OUT1 and OUT2."""
        control = self._registers[_MCR]
        if not control & _MCR_LOOPBACK:
            return _MSR_CARRIER_READY
        return (control & 2) << 3 | (control & 1) << 5 | (control & 4) << 4 | (control & 8) << 4

    def _update(self) -> None:
        self._line(self._pending() != _IIR_NONE)
