"""Goldfish real-time clock, as QEMU's virt board for RISC-V has it: nanoseconds since 1970, an alarm and its interrupt.

0x00 time, low half; reading it keeps the high half for 0x04      0x08, 0x0c alarm, low half and high half
0x10 interrupt enabled    0x14 clear the alarm    0x18 an alarm is set (read)    0x1c clear the interrupt

Writing the low half of the time or the alarm takes effect with the high half written before.
"""

from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.device import Clock, Line

TIME_LOW, TIME_HIGH, ALARM_LOW, ALARM_HIGH, ENABLE, CLEAR_ALARM, ALARM_STATUS, CLEAR_INTERRUPT = range(0, 0x20, 4)
_SECOND: Final = 1_000_000_000


@dataclass(slots=True)
class GoldfishRtc:
    """The clock: a device, and a `Timed` one. `epoch`: the time at power-on, in seconds since 1970."""

    clock: Clock
    line: Line
    epoch: int
    size: int = 0x1000

    _offset: int = field(init=False)  # nanoseconds since 1970 at power-on
    _kept: int = field(default=0, init=False)  # the high half of the time at the last read of the low half
    _time_high: int = field(default=0, init=False)
    _alarm_high: int = field(default=0, init=False)
    _alarm: int | None = field(default=None, init=False)
    _is_enabled: bool = field(default=False, init=False)
    _is_raised: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._offset = self.epoch * _SECOND

    def read(self, offset: int, size: int) -> int:
        """A register; 0 if there is none."""
        match offset:
            case 0x00:
                now = self._now()
                self._kept = now >> 32
                return now & 0xFFFF_FFFF
            case 0x04:
                return self._kept
            case 0x08:
                return (self._alarm or 0) & 0xFFFF_FFFF
            case 0x0C:
                return (self._alarm or 0) >> 32
            case 0x10:
                return int(self._is_enabled)
            case 0x18:
                return int(self._alarm is not None)
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register. The low half of a time or alarm takes effect with the high half."""
        match offset:
            case 0x00:
                self._offset += (self._time_high << 32 | value) - self._now()
            case 0x04:
                self._time_high = value
            case 0x08:
                self._alarm = self._alarm_high << 32 | value
            case 0x0C:
                self._alarm_high = value
            case 0x10:
                self._is_enabled = bool(value & 1)
            case 0x14:
                self._alarm = None
            case 0x1C:
                self._is_raised = False
        self.advance()

    def deadline(self) -> int | None:
        """When the alarm rings, in the machine's time (ns); None without an alarm."""
        return None if self._alarm is None else self._alarm - self._offset

    def advance(self) -> None:
        """Ring the alarm if it is due: it is cleared, and the interrupt becomes pending."""
        if self._alarm is not None and self._now() >= self._alarm:
            self._alarm, self._is_raised = None, True
        self.line(self._is_raised and self._is_enabled)

    def _now(self) -> int:
        return self._offset + self.clock.now()
