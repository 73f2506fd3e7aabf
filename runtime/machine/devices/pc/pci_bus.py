"""A PC's PCI bus: configuration ports and a window of memory -> the functions on the bus, one for each device number.

Configuration mechanism 1 (PCI Local Bus 3.0, 3.2.2.3.2): a register is selected by a word at port 0xcf8.

  31  30     24 23   16 15    11 10       8 7        2 1 0
+---+---------+-------+--------+----------+----------+---+
| E |    0    |  bus  | device | function | register | 0 |
+---+---------+-------+--------+----------+----------+---+
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from kinst.runtime.machine.devices.pci_ecam import HOST_BRIDGE

HEADER_SIZE: Final = 0x100
_ENABLED: Final = 1 << 31
_ADDRESS_BITS: Final = 0x80FF_FFFC


class PciFunction(Protocol):
    """The function of a device number."""

    def read(self, offset: int) -> int:
        """A byte of its configuration space."""
        ...

    def write(self, offset: int, value: int) -> None:
        """Write a byte of its configuration space."""
        ...

    @property
    def memory(self) -> range:
        """The addresses that it decodes at the moment."""
        ...

    def load(self, offset: int, size: int) -> int:
        """Read `size` bytes of its memory."""
        ...

    def store(self, offset: int, size: int, value: int) -> None:
        """Write `size` bytes of its memory."""
        ...


class Header:
    """A configuration space: bytes, and the bits of them that can be written."""

    def __init__(self, words: Mapping[int, int], writable: Mapping[int, int]) -> None:
        """Words of 32 bits by their offset, and masks of bits by the offset of their word."""
        self._bytes, self._masks = _spread(words), _spread(writable)

    def read(self, offset: int) -> int:
        """A byte."""
        return self._bytes[offset]

    def write(self, offset: int, value: int) -> None:
        """Change the writable bits of a byte."""
        mask = self._masks[offset]
        self._bytes[offset] = self._bytes[offset] & ~mask | value & mask

    def word(self, offset: int) -> int:
        """32 bits."""
        return int.from_bytes(self._bytes[offset : offset + 4], "little")


def _spread(words: Mapping[int, int]) -> bytearray:
    content = bytearray(HEADER_SIZE)
    for offset, word in words.items():
        content[offset : offset + 4] = word.to_bytes(4, "little")
    return content


class HostBridge:
    """Device 0: a `PciFunction` without memory."""

    memory = range(0)

    def __init__(self) -> None:
        self._header = Header(HOST_BRIDGE, {})
        self.read, self.write = self._header.read, self._header.write

    def load(self, offset: int, size: int) -> int:
        """Nothing is there."""
        return 0

    def store(self, offset: int, size: int, value: int) -> None:
        """Nothing is there."""


@dataclass(slots=True)
class ConfigurationAddress:
    """The port that selects a register. Only accesses of its full width reach it (3.2.2.3.2)."""

    size: int = field(default=4, init=False)
    value: int = field(default=0, init=False)

    def read(self, offset: int, size: int) -> int:
        """The selected register."""
        return self.value

    def write(self, offset: int, size: int, value: int) -> None:
        """Select a register."""
        self.value = value & _ADDRESS_BITS


@dataclass(slots=True)
class ConfigurationData:
    """The selected register, one byte for each port. Where there is no function, all bits are ones."""

    address: ConfigurationAddress
    functions: Sequence[PciFunction]
    size: int = field(default=4, init=False)

    def read(self, offset: int, size: int) -> int:
        """A byte of the register."""
        function = self._selected()
        return 0xFF if function is None else function.read(self.address.value & 0xFC | offset)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a byte of the register."""
        function = self._selected()
        if function is not None:
            function.write(self.address.value & 0xFC | offset, value & 0xFF)

    def _selected(self) -> PciFunction | None:
        """The function on bus 0 whose register is selected: devices here have function 0 only."""
        device, rest = self.address.value >> 11 & 0x1F, self.address.value & 0xFF_0700
        if not self.address.value & _ENABLED or rest or device >= len(self.functions):
            return None
        return self.functions[device]


@dataclass(slots=True)
class PciMemory:
    """The window that the bridge passes on. A function answers where its base address says."""

    base: int
    size: int
    functions: Sequence[PciFunction]

    def read(self, offset: int, size: int) -> int:
        """Read from the function that is there; all ones if none is."""
        function = self._find(self.base + offset)
        if function is None:
            return (1 << 8 * size) - 1
        return function.load(self.base + offset - function.memory.start, size)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write to the function that is there."""
        function = self._find(self.base + offset)
        if function is not None:
            function.store(self.base + offset - function.memory.start, size, value)

    def _find(self, address: int) -> PciFunction | None:
        return next((function for function in self.functions if address in function.memory), None)
