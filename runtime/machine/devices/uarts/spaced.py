"""Registers of one byte, spread over an address space of wider ones: a 16550 as systems-on-chip have it.

    register n at n << shift        of one byte, whatever the width of the access

Behind its eight registers a DesignWare APB UART (DW_apb_uart databook 5.1) has more, which say that it is idle:

    0x7c USR    1 TFNF: not full   2 TFE: empty
    0xf8 UCV    version, in ASCII
"""

from collections.abc import Mapping
from typing import Final

from kinst.runtime.machine.device import Device

_COUNT: Final = 8
DESIGNWARE: Final = {0x7C: 0x6, 0xF8: 0x3430_312A}


class Spaced:
    """A device with eight byte registers, each at a multiple of `1 << shift`. `others`: constant registers behind."""

    def __init__(self, device: Device, shift: int, size: int, others: Mapping[int, int]) -> None:
        """`size`: bytes of address space."""
        self.size = size
        self._device, self._shift, self._others = device, shift, others

    def read(self, offset: int, size: int) -> int:
        """A register; 0 if there is none."""
        number, within = divmod(offset, 1 << self._shift)
        if number >= _COUNT:
            return self._others.get(offset, 0) & (1 << 8 * size) - 1
        return 0 if within else self._device.read(number, 1)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register."""
        number, within = divmod(offset, 1 << self._shift)
        if number < _COUNT and not within:
            self._device.write(number, 1, value & 0xFF)
