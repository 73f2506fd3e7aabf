"""SiFive CLINT, as QEMU's virt has it: software interrupts and the machine timer of every hart.

0x0000 + 4 * hart   msip         bit 0 drives the hart's machine software interrupt
0x4000 + 8 * hart   mtimecmp     mtime >= mtimecmp drives the machine timer interrupt
0xbff8              mtime        counts at the board's timebase
"""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.machine.device import Clock, Line

_MTIMECMP: Final = 0x4000
_MTIME: Final = 0xBFF8
_SECOND: Final = 1_000_000_000
_NEVER: Final = (1 << 64) - 1


class MachineTime:
    """mtime, which is also the value of the time CSR: counts at the board's timebase."""

    def __init__(self, clock: Clock, timebase: int) -> None:
        """`timebase` is in Hz."""
        self._clock, self._timebase = clock, timebase
        self._offset = 0  # the sum of changes by the guest's writes

    def ticks(self) -> int:
        """The value of mtime."""
        return self._clock.now() * self._timebase // _SECOND + self._offset & _NEVER

    def set(self, value: int) -> None:
        """Write mtime."""
        self._offset += value - self.ticks()

    def reaches(self, value: int) -> int:
        """When mtime reaches a value, in ns of the clock."""
        return -(-(value - self._offset) * _SECOND // self._timebase)


class Clint:
    """The CLINT: a device with registers of 64 bits that may be accessed by halves, and a `Timed` one."""

    size = 0x10000

    def __init__(self, time: MachineTime, software: Sequence[Line], timer: Sequence[Line]) -> None:
        """`software` and `timer` have a line for each hart."""
        self._time = time
        self._software_lines = software
        self._timer_lines = timer
        self._software = [0] * len(software)
        self._compare = [_NEVER] * len(timer)
        self._is_raised = [False] * len(timer)

    def set_timer(self, hart: int, value: int) -> None:
        """Set a hart's mtimecmp, in ticks of mtime."""
        self._compare[hart] = value
        self.advance()

    def deadline(self) -> int | None:
        """When mtime reaches the next mtimecmp whose line is not raised yet, in ns; None if there is none."""
        waiting = [c for c, is_raised in zip(self._compare, self._is_raised, strict=True) if not is_raised]
        if not waiting or min(waiting) == _NEVER:
            return None
        return self._time.reaches(min(waiting))

    def advance(self) -> None:
        """Raise the lines of timers that are due, and lower those that were set again."""
        now = self._time.ticks()
        for hart, compare in enumerate(self._compare):
            self._is_raised[hart] = now >= compare
            self._timer_lines[hart](now >= compare)

    def read(self, offset: int, size: int) -> int:
        """A register or half of one; 0 if there is none."""
        if offset >= _MTIME:
            return _part(self._time.ticks(), offset - _MTIME, size)
        if offset >= _MTIMECMP:
            hart, start = divmod(offset - _MTIMECMP, 8)
            return _part(self._compare[hart], start, size) if hart < len(self._compare) else 0
        hart = offset // 4
        return self._software[hart] if hart < len(self._software) else 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register or half of one."""
        if offset >= _MTIME:
            self._time.set(_merged(self._time.ticks(), offset - _MTIME, size, value))
            self.advance()
        elif offset >= _MTIMECMP:
            hart, start = divmod(offset - _MTIMECMP, 8)
            if hart < len(self._compare):
                self.set_timer(hart, _merged(self._compare[hart], start, size, value))
        elif offset // 4 < len(self._software):
            self._software[offset // 4] = value & 1
            self._software_lines[offset // 4](bool(value & 1))


def _part(value: int, start: int, size: int) -> int:
    return value >> 8 * start & (1 << 8 * size) - 1


def _merged(old: int, start: int, size: int, value: int) -> int:
    mask = (1 << 8 * size) - 1 << 8 * start
    return old & ~mask | value << 8 * start & mask
