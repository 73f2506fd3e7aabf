"""The PC's clock and CMOS memory (Motorola MC146818): ports 0x70, 0x71 -> date, alarms and 128 bytes of settings.

The date starts at a fixed day unless the board says otherwise, so that two runs of an image see the same date.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from kinst.runtime.machine.device import Clock, Line

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000_000
_LOWERED, _RAISED = False, True

# Register A:  UIP  DV2-DV0  RS3-RS0      B:  SET PIE AIE UIE SQWE DM 24/12 DSE      C:  IRQF PF AF UF 0
_A, _B, _C, _D, _CENTURY = 0x0A, 0x0B, 0x0C, 0x0D, 0x32
_UPDATING: Final = 0x80
_SET, _BINARY, _HOURS_24 = 0x80, 0x04, 0x02
_IRQ, _PERIODIC, _ALARM, _UPDATED = 0x80, 0x40, 0x20, 0x10
_ANY: Final = 0xC0  # an alarm byte of this value or more matches everything
_UPDATE_TIME: Final = 244_000  # ns before a change of the date in which UIP is set


class Rtc:
    """The chip. `line` is IRQ 8; `settings` are the CMOS bytes that a BIOS would have left, by index."""

    size = 2

    def __init__(self, clock: Clock, line: Line, settings: Mapping[int, int], start: datetime = START) -> None:
        self._clock = clock
        self._line = line
        self._index = 0
        self._memory = bytearray(128)
        self._memory[_A], self._memory[_B], self._memory[_D] = 0x26, _HOURS_24, 0x80
        for index, value in settings.items():
            self._memory[index] = value
        self._base = start  # the date at `_base_time`
        self._base_time = clock.now()
        self._checked = self._base_time  # interrupts up to this time (ns) were raised

    def read(self, offset: int, size: int) -> int:
        """The register that is selected through port 0x70. Port 0x70 itself reads as ones."""
        if offset == 0:
            return 0xFF
        if self._index in _FIELDS or self._index == _CENTURY:
            return self._date_field(self._index)
        value = self._memory[self._index]
        if self._index == _A:
            until_update = _SECOND - (self._clock.now() - self._base_time) % _SECOND
            value |= _UPDATING if until_update <= _UPDATE_TIME and not self._memory[_B] & _SET else 0
        elif self._index == _C:
            self._raise_due()
            value = self._memory[_C]
            self._memory[_C] = 0  # a read clears all flags, and only that lowers the line
            self._line(_LOWERED)
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        """Select a register (bit 7 masks the NMI, which nothing here raises), or write the selected one."""
        if offset == 0:
            self._index = value & 0x7F
        elif self._index in _FIELDS or self._index == _CENTURY:
            self._set_date_field(self._index, value)
        elif self._index not in (_C, _D):
            if self._index == _B and (value ^ self._memory[_B]) & _SET:
                self._hold(held=bool(value & _SET))
            self._memory[self._index] = value & 0x7F if self._index == _A else value
            self._checked = self._clock.now()

    def deadline(self) -> int | None:
        """The time (ns) of the next event whose interrupt is enabled; None if there is none."""
        enabled = self._memory[_B] & (_PERIODIC | _ALARM | _UPDATED)
        times = [self._checked + self._period()] if enabled & _PERIODIC and self._period() else []
        if enabled & (_ALARM | _UPDATED):
            times.append(self._checked + _SECOND - (self._checked - self._base_time) % _SECOND)
        return min(times, default=None)

    def advance(self) -> None:
        """Set the flags of the events since the last time, and raise IRQ 8 for those that are enabled."""
        due = self.deadline()
        if due is not None and due <= self._clock.now():
            self._raise_due()

    def _period(self) -> int:
        """The period of the periodic interrupt in ns, from RS3-RS0 (data sheet table 5); 0 if it is off."""
        rate = self._memory[_A] & 15
        if rate == 0:
            return 0
        return _SECOND * (1 << (rate - 1 if rate > 2 else rate + 6)) // 32768

    def _raise_due(self) -> None:
        now = self._clock.now()
        flags = _PERIODIC if self._period() and now - self._checked >= self._period() else 0
        seconds = (now - self._base_time) // _SECOND - (self._checked - self._base_time) // _SECOND
        if seconds and not self._memory[_B] & _SET:
            flags |= _UPDATED | (_ALARM if self._alarm_matches() else 0)
        if flags:
            self._checked = now
        self._memory[_C] |= flags
        if self._memory[_C] & self._memory[_B] & (_PERIODIC | _ALARM | _UPDATED):
            self._memory[_C] |= _IRQ
            self._line(_RAISED)

    def _alarm_matches(self) -> bool:
        return all(
            self._memory[alarm] >= _ANY or self._memory[alarm] == self._date_field(alarm - 1) for alarm in (1, 3, 5)
        )

    def _date(self) -> datetime:
        if self._memory[_B] & _SET:
            return self._base
        return self._base + timedelta(microseconds=(self._clock.now() - self._base_time) // 1000)

    def _hold(self, *, held: bool) -> None:
        """SET was written: it stops the date, so that it can be written. When it is cleared, a new second begins."""
        if held:
            self._base = self._date()
        self._base_time = self._clock.now()

    def _date_field(self, index: int) -> int:
        date = self._date()
        value = _VALUE[index](date)
        if index == 4 and not self._memory[_B] & _HOURS_24:
            return self._encode((value + 11) % 12 + 1) | (0x80 if value >= 12 else 0)
        return self._encode(value)

    def _set_date_field(self, index: int, raw: int) -> None:
        value = self._decode(raw)
        if index == 4 and not self._memory[_B] & _HOURS_24:
            value = self._decode(raw & 0x7F) % 12 + (12 if raw & 0x80 else 0)
        date = self._date()
        year, month, day = date.year, date.month, date.day
        if index == 9:
            year = year // 100 * 100 + value
        elif index == _CENTURY:
            year = value * 100 + year % 100
        month, day = (value if index == 8 else month), (value if index == 7 else day)
        try:
            self._base = datetime(
                year,
                month,
                day,
                value if index == 4 else date.hour,
                value if index == 2 else date.minute,
                value if index == 0 else date.second,
                date.microsecond,
                UTC,
            )
        except ValueError:
            return  # as on the chip, a date that does not exist has no defined effect
        self._base_time = self._clock.now()

    def _encode(self, value: int) -> int:
        return value if self._memory[_B] & _BINARY else int(str(value), 16)

    def _decode(self, value: int) -> int:
        return value if self._memory[_B] & _BINARY else (value >> 4) * 10 + (value & 15)


_FIELDS: Final = frozenset({0, 2, 4, 6, 7, 8, 9})
_VALUE: Final = {
    0: lambda date: date.second,
    2: lambda date: date.minute,
    4: lambda date: date.hour,
    6: lambda date: date.isoweekday() % 7 + 1,
    7: lambda date: date.day,
    8: lambda date: date.month,
    9: lambda date: date.year % 100,
    _CENTURY: lambda date: date.year // 100,
}
