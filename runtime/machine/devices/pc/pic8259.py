"""The PC's two interrupt controllers (Intel 8259A): interrupt lines and ports 0x20, 0xa0, 0x4d0 -> INTR and a vector.

Commands, priorities and the spurious interrupt are those of Intel's data sheet 231468. The slave's output is input 2 of
the master. As on every PC with PCI, the chip set's registers at 0x4d0 select the trigger mode of each line.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.device import Line

_CASCADE: Final = 2
_SPURIOUS: Final = 7


@dataclass(slots=True)
class _Chip:
    """One 8259A. `irr`, `isr`, `imr` and `levels` have one bit per line. `first` is the line with the highest
    priority."""

    is_master: bool
    base: int = 0
    irr: int = 0
    isr: int = 0
    imr: int = 0xFF
    levels: int = 0
    edge_triggered: int = 0xFF
    first: int = 0
    init_step: int = 0
    needs_icw4: bool = False
    auto_eoi: bool = False
    rotate_on_auto_eoi: bool = False
    special_mask: bool = False
    special_nested: bool = False
    reads_isr: bool = False
    polled: bool = False

    def set_line(self, line: int, *, level: bool) -> None:
        """Set an input. An edge is remembered while the line stays high; a level lasts as long as the line is high."""
        bit = 1 << line
        rising = level and not self.levels & bit
        self.levels = self.levels | bit if level else self.levels & ~bit
        if rising and self.edge_triggered & bit:
            self.irr |= bit
        elif not level:  # before INTA: that then finds no request, and gives the spurious 7
            self.irr &= ~bit

    def requests(self) -> int:
        return (self.irr | self.levels & ~self.edge_triggered) & ~self.imr

    def priority(self, lines: int) -> int:
        """How many steps the best of `lines` is below `first` in priority; 8 if there is none."""
        rotated = (lines >> self.first | lines << (8 - self.first)) & 0xFF
        return (rotated & -rotated).bit_length() - 1 if rotated else 8

    def pending(self) -> int | None:
        """The line to be served, if its priority is higher than that of the lines in service; else None."""
        best = self.priority(self.requests())
        in_service = self.isr & ~self.imr if self.special_mask else self.isr
        if self.special_nested and self.is_master:
            in_service &= ~(1 << _CASCADE)
        if best >= self.priority(in_service):
            return None
        return (self.first + best) & 7

    def acknowledge(self) -> int:
        """INTA: the line that is now in service, or 7 if no line requests service any more."""
        line = self.pending()
        if line is None:
            return _SPURIOUS
        self.irr &= ~(1 << line)
        if not self.auto_eoi:
            self.isr |= 1 << line
        elif self.rotate_on_auto_eoi:
            self.first = (line + 1) & 7
        return line

    def write_command(self, value: int) -> None:
        if value & 0x10:
            self._initialise(value)
        elif value & 0x08:
            self._operate(value)
        else:
            self._end_of_interrupt(value)

    def write_data(self, value: int) -> None:
        """OCW1, or ICW2 to ICW4 while the chip is being initialised."""
        if self.init_step == 0:
            self.imr = value
        elif self.init_step == 2:
            self.base = value & 0xF8
            self.init_step = 3
        elif self.init_step == 3:  # ICW3 repeats how the board is wired
            self.init_step = 4 if self.needs_icw4 else 0
        else:
            self.auto_eoi = bool(value & 2)
            self.special_nested = bool(value & 16)
            self.init_step = 0

    def read_command(self) -> int:
        """IRR or ISR; after a poll command what an INTA would have given."""
        if self.polled:
            self.polled = False
            line = self.pending()
            return 0 if line is None else 0x80 | self.acknowledge()
        if self.reads_isr:
            return self.isr
        return self.irr | self.levels & ~self.edge_triggered

    def _initialise(self, value: int) -> None:
        """ICW1:  A7-A5  1  LTIM  ADI  SNGL  IC4."""
        self.irr = self.isr = self.imr = self.first = 0
        self.auto_eoi = self.rotate_on_auto_eoi = self.special_mask = self.special_nested = False
        self.reads_isr = self.polled = False
        self.needs_icw4 = bool(value & 1)
        self.init_step = 2

    def _operate(self, value: int) -> None:
        """OCW3:  0  ESMM  SMM  0  1  P  RR  RIS."""
        if value & 0x04:
            self.polled = True
        if value & 0x02:
            self.reads_isr = bool(value & 1)
        if value & 0x40:
            self.special_mask = bool(value & 0x20)

    def _end_of_interrupt(self, value: int) -> None:
        """OCW2:  R  SL  EOI  0  0  L2  L1  L0."""
        rotate, specific, end = value >> 7 & 1, value >> 6 & 1, value >> 5 & 1
        line = value & 7
        if end and not specific:
            steps = self.priority(self.isr)
            if steps == 8:
                return
            line = (self.first + steps) & 7
        if end:
            self.isr &= ~(1 << line)
        elif not specific:
            self.rotate_on_auto_eoi = bool(rotate)
            return
        if rotate:
            self.first = (line + 1) & 7


@dataclass(slots=True)
class _Ports:
    """The two ports of one chip."""

    pair: "Pic8259"
    chip: _Chip
    size: int = field(default=2, init=False)

    def read(self, offset: int, size: int) -> int:
        """IRR or ISR at the first port, IMR at the second."""
        value = self.chip.imr if offset else self.chip.read_command()
        self.pair.update()
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        """Commands at the first port, masks and initialisation at the second."""
        if offset:
            self.chip.write_data(value & 0xFF)
        else:
            self.chip.write_command(value & 0xFF)
        self.pair.update()


@dataclass(slots=True)
class _TriggerPorts:
    """ELCR, ports 0x4d0 and 0x4d1: a set bit makes a line level triggered; lines 0, 1, 2, 8 and 13 always are edges."""

    chips: tuple[_Chip, _Chip]
    size: int = field(default=2, init=False)

    def read(self, offset: int, size: int) -> int:
        """The level-triggered lines, as bits."""
        return ~self.chips[offset].edge_triggered & 0xFF

    def write(self, offset: int, size: int, value: int) -> None:
        """Select the level-triggered lines, as bits."""
        self.chips[offset].edge_triggered = ~(value & (0xDE if offset else 0xF8)) & 0xFF


class Pic8259:
    """The two controllers. `intr` is the CPU's interrupt input, which the CPU answers with `acknowledge`."""

    def __init__(self, intr: Line) -> None:
        self._intr = intr
        self._master, self._slave = _Chip(is_master=True), _Chip(is_master=False)
        self.master_ports = _Ports(self, self._master)
        self.slave_ports = _Ports(self, self._slave)
        self.trigger_ports = _TriggerPorts((self._master, self._slave))

    def line(self, number: int) -> Line:
        """The input of IRQ 0 to 15."""
        chip = self._slave if number & 8 else self._master

        def set_level(level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
            chip.set_line(number & 7, level=level)
            self.update()

        return set_level

    def trigger_by_level(self, lines: Iterable[int]) -> None:
        """Make IRQs level triggered, which may be shared."""
        for line in lines:
            chip = self._slave if line & 8 else self._master
            chip.edge_triggered &= ~(1 << (line & 7))

    def acknowledge(self) -> int:
        """Let the CPU take the interrupt. Returns its vector."""
        line = self._master.acknowledge()
        vector = self._master.base + line
        if line == _CASCADE:
            vector = self._slave.base + self._slave.acknowledge()
            self._master.set_line(_CASCADE, level=False)  # so that the slave's next request is a new edge
        self.update()
        return vector

    def update(self) -> None:
        """Pass the slave's output on to the master, and the master's to the CPU."""
        self._master.set_line(_CASCADE, level=self._slave.pending() is not None)
        self._intr(self._master.pending() is not None)
