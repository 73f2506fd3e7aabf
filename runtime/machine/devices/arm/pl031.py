"""PL031 real-time clock (DDI 0224): seconds since 1970 -> a data register, a match register and an interrupt."""

from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.device import Clock, Line
from kinst.runtime.machine.devices.arm.primecell import identification

DR, MR, LR, CR, IMSC, RIS, MIS, ICR = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C
_SECOND: Final = 1_000_000_000
_WORD: Final = 0xFFFFFFFF


@dataclass(slots=True)
class Pl031:
    """The clock. `epoch`: the time at power-on, in seconds since 1970."""

    clock: Clock
    line: Line
    epoch: int
    size: int = 0x1000

    _match: int = field(default=0, init=False)
    _loaded: int = field(default=0, init=False)
    _mask: int = field(default=0, init=False)
    _raw: int = field(default=0, init=False)
    _due: int | None = field(default=None, init=False)  # the machine's time (ns) at which DR reaches MR

    def read(self, offset: int, size: int) -> int:
        """A register; 0 if there is none."""
        registers = {
            DR: self._now(), MR: self._match, LR: self._loaded, CR: 1, IMSC: self._mask, RIS: self._raw,
            MIS: self._raw & self._mask,
        }  # fmt: skip
        return identification(0x031, 1, offset) if offset >= 0xFE0 else registers.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register; one that is read-only is ignored."""
        value &= _WORD
        if offset == MR:
            self._match = value
        elif offset == LR:
            self._loaded = value
            self.epoch += value - self._now()
        elif offset == IMSC:
            self._mask = value & 1
        elif offset == ICR:
            self._raw &= ~value
        if offset in (MR, LR):
            self._set_alarm()
        self.line(bool(self._raw & self._mask))

    def deadline(self) -> int | None:
        """When the clock reaches the match register, in ns; None if it does not."""
        return self._due

    def advance(self) -> None:
        """Raise the interrupt if the match is due."""
        if self._due is not None and self.clock.now() >= self._due:
            self._due = None
            self._raw = 1
            self.line(bool(self._mask))

    def _now(self) -> int:
        return self.epoch + self.clock.now() // _SECOND & _WORD

    def _set_alarm(self) -> None:
        wait = self._match - self._now() & _WORD
        self._due = (self.clock.now() // _SECOND + wait) * _SECOND
