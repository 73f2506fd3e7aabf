"""PL061 general-purpose I/O (DDI 0190). Nothing is connected to its eight pins, which are pulled down to 0."""

from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.arm.primecell import identification

DIR, IS, IBE, IEV, IE, RIS, MIS, IC, AFSEL = range(0x400, 0x424, 4)
_PLAIN: Final = (DIR, IS, IBE, IEV, IE, AFSEL)


@dataclass(slots=True)
class Pl061:
    """The pins. `line` is the interrupt. An output pin reads as what was written to it."""

    line: Line
    size: int = 0x1000

    _data: int = field(default=0, init=False)
    _registers: dict[int, int] = field(default_factory=lambda: dict.fromkeys(_PLAIN, 0), init=False)

    def read(self, offset: int, size: int) -> int:
        """A register. Below 0x400, bits 9:2 of the offset select the pins that are read."""
        if offset < DIR:
            return self._pins() & offset >> 2
        if offset >= 0xFE0:
            return identification(0x061, 0, offset)
        if offset in (RIS, MIS):
            return self._raised() & (self._registers[IE] if offset == MIS else 0xFF)
        return self._registers.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register. IC only clears edges, and there are none."""
        if offset < DIR:
            chosen = offset >> 2 & self._registers[DIR]
            self._data = self._data & ~chosen | value & chosen
        elif offset in self._registers:
            self._registers[offset] = value & 0xFF
        self.line(bool(self._raised() & self._registers[IE]))

    def _pins(self) -> int:
        return self._data & self._registers[DIR]

    def _raised(self) -> int:
        """The pins that interrupt: those with level interrupts (IS) and the level in IEV. Inputs never change, so there
        are no edges."""
        registers = self._registers
        return registers[IS] & ~(self._pins() ^ registers[IEV]) & 0xFF
