"""PCI Express configuration space (ECAM) of a host bridge without other devices.

 27     20 19   15 14      12 11            0
+---------+-------+----------+---------------+
|   bus   |device | function |   register    |   offset in the window (PCI Express Base 5.0, 7.2.2)
+---------+-------+----------+---------------+
"""

from typing import Final

from kinst.targets.values import dataclass

_FUNCTION_SIZE: Final = 0x1000
# Vendor and device id, revision and class code (host bridge), subsystem: QEMU's pcie-root host bridge.
HOST_BRIDGE: Final = {0x00: 0x0008_1B36, 0x08: 0x0600_0000, 0x2C: 0x1100_1AF4}


@dataclass(frozen=True, slots=True)
class PciEcam:
    """Bus 0 of a host bridge. A function that does not exist reads as all ones."""

    size: int

    def read(self, offset: int, size: int) -> int:
        """A configuration register."""
        if offset >= _FUNCTION_SIZE:
            return (1 << size * 8) - 1
        return HOST_BRIDGE.get(offset & ~3, 0) >> (offset & 3) * 8 & (1 << size * 8) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """Do nothing: no register is writable."""
