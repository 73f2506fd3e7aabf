"""GICv2m frame: a PCI device writes the number of an interrupt -> that shared interrupt (Arm SBSA, appendix E)."""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.targets.values import dataclass

TYPER, SETSPI, IIDR = 0x008, 0x040, 0xFCC
_QEMU: Final = 0x51  # QEMU's product number


@dataclass(frozen=True, slots=True)
class Gicv2m:
    """The frame. `lines`: the shared interrupts that it may raise. `first`: the GIC's number of the first of them."""

    first: int
    lines: Sequence[Line]
    size: int = 0x1000

    def read(self, offset: int, size: int) -> int:
        """A register: the range of interrupts in MSI_TYPER, and the identification."""
        return {TYPER: self.first << 16 | len(self.lines), IIDR: _QEMU << 20}.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """A write to SETSPI: an edge on the interrupt whose number is written."""
        number = (value & 0x3FF) - self.first
        if offset == SETSPI and 0 <= number < len(self.lines):
            self.lines[number](True)  # noqa: FBT003 - an interrupt line is its level
            self.lines[number](False)  # noqa: FBT003
