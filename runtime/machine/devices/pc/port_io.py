"""Single I/O ports of a PC that end the run or just take a byte: writes -> the machine's power switch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_SLP_EN: Final = 0x2000
PowerOff = Callable[[int], None]  # called with the exit code of the run


@dataclass(slots=True)
class DebugExit:
    """QEMU's isa-debug-exit, usually at 0xf4: a write ends the run.

    The exit code is the value written. QEMU's is `value << 1 | 1`, which is never 0; here 0 must be possible.
    """

    power_off: PowerOff
    size: int = field(default=4, init=False)

    def read(self, offset: int, size: int) -> int:
        """0: there is nothing to read."""
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        """End the run with the value as its exit code."""
        self.power_off(value & 0xFF)


@dataclass(slots=True)
class AcpiEvents:
    """PM1a_EVT of QEMU's PC (0x600): two bytes of events, of which none ever comes, and two that enable them (ACPI
    4.8.3.1)."""

    size: int = field(default=4, init=False)
    _enabled: int = field(default=0, init=False)

    def read(self, offset: int, size: int) -> int:
        """A byte: 0 of the events, and what was last written of the others."""
        return 0 if offset < 2 else self._enabled >> 8 * (offset - 2) & 0xFF

    def write(self, offset: int, size: int, value: int) -> None:
        """Change a byte of what is enabled; writing clears events, of which there are none."""
        if offset >= 2:
            at = 8 * (offset - 2)
            self._enabled = self._enabled & ~(0xFF << at) | (value & 0xFF) << at


@dataclass(slots=True)
class AcpiPowerControl:
    """PM1a_CNT of QEMU's PC (0x604): bit 13, SLP_EN, switches the machine off (ACPI 4.8.3.2.1)."""

    power_off: PowerOff
    size: int = field(default=2, init=False)
    _value: int = field(default=1, init=False)

    def read(self, offset: int, size: int) -> int:
        """A byte of the last value written, with SCI_EN set."""
        return self._value >> offset * 8 & 0xFF

    def write(self, offset: int, size: int, value: int) -> None:
        """Change a byte; SLP_EN, in the high byte, switches the machine off."""
        at = 8 * offset
        self._value = (self._value & ~(0xFF << at) | (value & 0xFF) << at) & ~_SLP_EN | 1
        if value << at & _SLP_EN:
            self.power_off(0)


@dataclass(slots=True)
class ResetControl:
    """The chip set's reset register at 0xcf9. Bit 2 resets the machine, which ends the run."""

    power_off: PowerOff
    size: int = field(default=1, init=False)
    _value: int = field(default=0, init=False)

    def read(self, offset: int, size: int) -> int:
        """The last value written."""
        return self._value

    def write(self, offset: int, size: int, value: int) -> None:
        """Write the register; bit 2 ends the run."""
        self._value = value & 0x02
        if value & 0x04:
            self.power_off(0)


@dataclass(slots=True)
class PostCode:
    """Port 0x80: a byte for the display of a debug card. Kernels write to it to wait a microsecond."""

    size: int = field(default=1, init=False)
    value: int = field(default=0, init=False)

    def read(self, offset: int, size: int) -> int:
        """The last code written."""
        return self.value

    def write(self, offset: int, size: int, value: int) -> None:
        """Keep the code."""
        self.value = value & 0xFF
