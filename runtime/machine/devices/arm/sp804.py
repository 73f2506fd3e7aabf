"""SP804 dual timer (Arm DDI 0271): two down-counters over the machine's time, without interrupts.

0x00 Load   0x04 Value   0x08 Control: 1 32 bits  6 periodic  7 enabled  3:2 prescaler   0x18 BGLoad
    The second counter has the same from 0x20 on.
"""

from typing import Final

from kinst.runtime.machine.device import Clock
from kinst.runtime.machine.devices.arm.primecell import identification

_SECOND: Final = 1_000_000_000
_LOAD, _VALUE, _CONTROL, _BACKGROUND = 0x00, 0x04, 0x08, 0x18
_WIDE, _PERIODIC, _ENABLED = 1 << 1, 1 << 6, 1 << 7
_RESET_CONTROL: Final = 1 << 5


class _Counter:
    """One of the two."""

    def __init__(self, clock: Clock, frequency: int) -> None:
        self._clock, self._frequency = clock, frequency
        self.load, self.control, self._since = 0xFFFF_FFFF, _RESET_CONTROL, 0

    def restart(self) -> None:
        """Count from the load value on."""
        self._since = self._clock.now()

    def value(self) -> int:
        """The counter; it stands at the load value while it is off."""
        if not self.control & _ENABLED:
            return self.load
        passed = (self._clock.now() - self._since) * self._frequency // _SECOND >> 4 * (self.control >> 2 & 3)
        if self.control & _PERIODIC:
            return self.load - passed % (self.load + 1)
        return self.load - passed & (0xFFFF_FFFF if self.control & _WIDE else 0xFFFF)


class Sp804:
    """The timer, a device with registers of 32 bits."""

    size = 0x1000

    def __init__(self, clock: Clock, frequency: int) -> None:
        """`frequency` in Hz."""
        self._counters = (_Counter(clock, frequency), _Counter(clock, frequency))

    def read(self, offset: int, size: int) -> int:
        """A register; 0 if there is none."""
        if offset >= 0xFE0:
            return identification(0x804, 1, offset & ~3)
        if offset >= 0x40:
            return 0
        counter = self._counters[offset >> 5]
        known = {_LOAD: counter.load, _BACKGROUND: counter.load, _CONTROL: counter.control}
        register = offset & 0x1C
        return (counter.value() if register == _VALUE else known.get(register, 0)) & (1 << 8 * size) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register."""
        if offset >= 0x40:
            return
        counter = self._counters[offset >> 5]
        match offset & 0x1C:
            case 0x00:
                counter.load = value
                counter.restart()
            case 0x08:
                is_started = value & ~counter.control & _ENABLED
                counter.control = value
                if is_started:
                    counter.restart()
            case 0x18:
                counter.load = value
