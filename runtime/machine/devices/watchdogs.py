"""Watchdogs: a guest that does not restart them in time -> the machine is reset, which ends the run.

    sp805   (Arm DDI 0270)            0x00 load  0x04 value  0x08 control: 0 counts, and interrupts  1 resets
                                      0x0c interrupt clear: restarts  0x10 raw status  0x14 status  0xc00 lock
    dw-wdt  (Synopsys DW_apb_wdt)     0x00 control: 0 enabled  1 interrupts first  0x04 timeout: 2^(16 + n)
                                      0x08 value  0x0c restart: by 0x76  0x10 status  0x14 clears the interrupt, read

Both count from the start value to 0, interrupt, and reset at the second 0 if the interrupt is pending still.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Clock, Line
from kinst.runtime.machine.devices.arm.primecell import identification

_SECOND: Final = 1_000_000_000
_UNLOCK: Final = 0x1ACC_E551
_RESTART: Final = 0x76
_WORD: Final = (1 << 32) - 1


class Countdown:
    """What both have: a counter over the machine's time, that bites. A `Timed` device."""

    size = 0x1000

    def __init__(self, clock: Clock, frequency: int, line: Line, power_off: Callable[[int, End], None]) -> None:
        """It stands. `frequency` in Hz; `power_off` gets an exit code, and that the machine was reset."""
        self._clock, self._frequency, self._line, self._power_off = clock, frequency, line, power_off
        self._ends: int | None = None  # ns of the clock; None: it stands
        self._is_pending = False

    @property
    def _ticks(self) -> int:
        """From a start to 0."""
        raise NotImplementedError

    def _bites(self) -> bool:
        """Whether the next 0 resets the machine."""
        raise NotImplementedError

    def _start(self) -> None:
        self._ends = self._clock.now() + max(1, self._ticks * _SECOND // self._frequency)

    def _left(self) -> int:
        """The counter."""
        if self._ends is None:
            return self._ticks
        return max(0, self._ends - self._clock.now()) * self._frequency // _SECOND & _WORD

    def _set_pending(self, *, is_pending: bool) -> None:
        self._is_pending = is_pending
        self._line(is_pending)

    def deadline(self) -> int | None:
        """See `Timed`."""
        return self._ends

    def advance(self) -> None:
        """See `Timed`."""
        if self._ends is None or self._ends > self._clock.now():
            return
        if self._bites():
            self._ends = None
            self._power_off(0, End.RESET)
            return
        self._set_pending(is_pending=True)
        self._start()


class Sp805(Countdown):
    """Arm's, a device with registers of 32 bits."""

    def __init__(self, clock: Clock, frequency: int, line: Line, power_off: Callable[[int, End], None]) -> None:
        """See `Countdown`."""
        super().__init__(clock, frequency, line, power_off)
        self._load, self._control, self._is_locked = _WORD, 0, False

    @property
    def _ticks(self) -> int:
        return self._load

    def _bites(self) -> bool:
        return self._is_pending and bool(self._control & 2)

    def read(self, offset: int, size: int) -> int:
        """A register; 0 if there is none."""
        if offset >= 0xFE0:
            return identification(0x805, 1, offset & ~3)
        pending = int(self._is_pending)
        known = {
            0x0: self._load,
            0x8: self._control,
            0x10: pending,
            0x14: pending & self._control,
            0xC00: self._is_locked,
        }
        return (self._left() if offset == 0x4 else known.get(offset, 0)) & (1 << 8 * size) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register. While it is locked, only the lock can be written."""
        if offset == 0xC00:
            self._is_locked = value != _UNLOCK
        elif self._is_locked:
            return
        elif offset == 0x0:
            self._load = value
            self._restart()
        elif offset == 0x8:
            is_started = value & ~self._control & 1
            self._control = value & 3
            if is_started or not value & 1:
                self._restart()
        elif offset == 0xC:
            self._set_pending(is_pending=False)
            self._restart()

    def _restart(self) -> None:
        self._ends = None
        if self._control & 1:
            self._start()


class DesignWare(Countdown):
    """Synopsys', a device with registers of 32 bits. Once enabled it stays so."""

    def __init__(self, clock: Clock, frequency: int, line: Line, power_off: Callable[[int, End], None]) -> None:
        """See `Countdown`."""
        super().__init__(clock, frequency, line, power_off)
        self._control, self._timeout = 0, 0

    @property
    def _ticks(self) -> int:
        return 1 << 16 + (self._timeout & 15)

    def _bites(self) -> bool:
        return self._is_pending or not self._control & 2

    def read(self, offset: int, size: int) -> int:
        """A register; 0 if there is none."""
        if offset == 0x14:
            self._set_pending(is_pending=False)
        known = {0x0: self._control, 0x4: self._timeout, 0x8: self._left(), 0x10: int(self._is_pending)}
        return known.get(offset, 0) & (1 << 8 * size) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register."""
        if offset == 0x0:
            is_started = value & ~self._control & 1
            self._control = value & 0x3F | self._control & 1
            if is_started:
                self._start()
        elif offset == 0x4:
            self._timeout = value & 0xFF
        elif offset == 0xC and value & 0xFF == _RESTART:
            self._set_pending(is_pending=False)
            if self._control & 1:
                self._start()
