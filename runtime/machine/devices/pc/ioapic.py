"""A PC's I/O APIC: interrupt lines and registers at 0xfec00000 -> messages to the local APICs of CPUs.

Intel's data sheet 290566 (82093AA), with the EOI register of later chip sets, which version 0x20 has. A register is
selected by its number and read or written through a window.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.pc.lapic import Message, Mode

PINS: Final = 24
_SELECT, _WINDOW, _EOI = 0x00, 0x10, 0x40
_IDENTITY, _VERSION, _ARBITRATION, _TABLE = 0, 1, 2, 0x10
_NUMBER: Final = 0xF << 24  # bits of the identity
_VERSIONS: Final = 0x20 | PINS - 1 << 16

# An entry of the redirection table; low and high word are registers:
#
#   63       56 55   17   16    15     14     13     12      11   10    8 7      0
#   destination    0    masked level remote  low  pending logical mode    vector
_MASKED, _LEVEL, _REMOTE, _LOGICAL = 1 << 16, 1 << 15, 1 << 14, 1 << 11
_LOW, _HIGH = 0x1_AFFF, 0xFF00_0000  # what can be written: not "remote" and "pending"
_MODES: Final = frozenset({Mode.FIXED, Mode.LOWEST, Mode.NMI, Mode.INIT})  # no SMI, and no PIC is connected (ExtINT)


@dataclass(slots=True)
class _Pin:
    """An input and its entry. The line is its logical state: the polarity in the entry has no effect."""

    entry: int = _MASKED
    is_asserted: bool = False

    @property
    def requests(self) -> bool:
        """Whether its level requests an interrupt that no CPU has accepted yet."""
        return self.is_asserted and self.entry & (_LEVEL | _REMOTE) == _LEVEL

    def message(self) -> Message:
        entry = self.entry
        is_logical, is_level = bool(entry & _LOGICAL), bool(entry & _LEVEL)
        return Message(entry >> 8 & 7, entry & 0xFF, entry >> 56, is_logical, is_level)


class IoApic:
    """The I/O APIC with 24 pins; `send` delivers a message, and returns whether a local APIC accepts it."""

    size = 0x1000

    def __init__(self, send: Callable[[Message], bool]) -> None:
        self._send = send
        self._pins = [_Pin() for _ in range(PINS)]
        self._selected = self._identity = 0

    def line(self, number: int) -> Line:
        """The input of a pin. Edges of a pin that is masked are lost."""
        pin = self._pins[number]

        def drive(level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
            rises = level and not pin.is_asserted
            pin.is_asserted = level
            if pin.requests if pin.entry & _LEVEL else rises:
                self._deliver(pin)

        return drive

    def end_of_interrupt(self, vector: int) -> None:
        """A CPU has ended a vector: lines that are still asserted request again."""
        for pin in self._pins:
            if pin.entry & _REMOTE and pin.entry & 0xFF == vector:
                pin.entry &= ~_REMOTE
                if pin.requests:
                    self._deliver(pin)

    def read(self, offset: int, size: int) -> int:
        """The selected register's number, or its value."""
        if offset == _SELECT:
            return self._selected
        return self._register() if offset == _WINDOW else 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Select a register, write it, or end a vector."""
        if offset == _SELECT:
            self._selected = value & 0xFF
        elif offset == _WINDOW:
            self._write_register(value)
        elif offset == _EOI:
            self.end_of_interrupt(value & 0xFF)

    def _register(self) -> int:
        number = self._selected
        if number == _VERSION:
            return _VERSIONS
        if number in (_IDENTITY, _ARBITRATION):
            return self._identity
        pin = self._selected_pin()
        return 0 if pin is None else pin.entry >> 32 * (number & 1) & 0xFFFF_FFFF

    def _write_register(self, value: int) -> None:
        if self._selected == _IDENTITY:
            self._identity = value & _NUMBER
        pin = self._selected_pin()
        if pin is None:
            return
        if self._selected & 1:
            pin.entry = pin.entry & 0xFFFF_FFFF | (value & _HIGH) << 32
            return
        # An edge has no remote IRR: kernels switch to it and back to end an interrupt where there is no EOI register.
        kept = pin.entry & _REMOTE if value & _LEVEL else 0
        pin.entry = pin.entry >> 32 << 32 | value & _LOW | kept
        if pin.requests:
            self._deliver(pin)

    def _selected_pin(self) -> _Pin | None:
        index = self._selected - _TABLE >> 1
        return self._pins[index] if 0 <= index < PINS else None

    def _deliver(self, pin: _Pin) -> None:
        message = pin.message()
        if pin.entry & _MASKED or message.mode not in _MODES:
            return
        if self._send(message) and message.is_level:
            pin.entry |= _REMOTE
