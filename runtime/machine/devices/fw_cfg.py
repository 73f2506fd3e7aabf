"""QEMU's firmware configuration device (its docs/specs/fw_cfg): a selector and a data register, without DMA.

It has no kernel to load, and SMBIOS tables without content: firmware that reads it finds what it expects, and
continues.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_DATA, _SELECTOR = 0, 8
_SIGNATURE, _FEATURES, _CPUS, _MAXIMUM_CPUS, _DIRECTORY, _FIRST_FILE = 0x00, 0x01, 0x05, 0x0F, 0x19, 0x20
_TRADITIONAL: Final = 1  # feature bit 0; bit 1 would be DMA


def configuration(cpus: int) -> Mapping[int, bytes]:
    """Item number -> content, for a machine that was started without a kernel. Other items are empty."""
    files = {"etc/smbios/smbios-anchor": _smbios_anchor(), "etc/smbios/smbios-tables": _SMBIOS_TABLES}
    directory = len(files).to_bytes(4, "big")
    items = {
        _SIGNATURE: b"QEMU",
        _FEATURES: _TRADITIONAL.to_bytes(4, "little"),
        _CPUS: cpus.to_bytes(2, "little"),
        _MAXIMUM_CPUS: cpus.to_bytes(2, "little"),
    }
    for number, (name, content) in enumerate(files.items(), _FIRST_FILE):
        directory += len(content).to_bytes(4, "big") + number.to_bytes(2, "big") + bytes(2)
        directory += name.encode().ljust(56, b"\0")
        items[number] = content
    return items | {_DIRECTORY: directory}


_SMBIOS_TABLES: Final = bytes((127, 4, 0, 0x7F, 0, 0))  # end-of-table structure (SMBIOS 3.0, 7.45), no strings


def _smbios_anchor() -> bytes:
    """The 64-bit entry point (SMBIOS 3.0, 5.2.2). Firmware fills in where it put the tables."""
    anchor = b"_SM3_\0" + bytes((24, 3, 0, 0, 1, 0)) + len(_SMBIOS_TABLES).to_bytes(4, "little") + bytes(8)
    return anchor[:5] + bytes((-sum(anchor) & 0xFF,)) + anchor[6:]


@dataclass(slots=True)
class FirmwareConfiguration:
    """The memory-mapped interface: the data register is at 0, the 16-bit big-endian selector at 8."""

    items: Mapping[int, bytes]
    size: int = 0x18
    _item: bytes = field(default=b"", init=False)
    _at: int = field(default=0, init=False)

    def read(self, offset: int, size: int) -> int:
        """The next bytes of the item, in memory order for every width; zeros after its end."""
        if offset >= _SELECTOR:
            return 0
        piece = self._item[self._at : self._at + size].ljust(size, b"\0")
        self._at += size
        return int.from_bytes(piece, "little")

    def write(self, offset: int, size: int, value: int) -> None:
        """Select an item and start at its first byte."""
        if offset == _SELECTOR:
            self._item = self.items.get(int.from_bytes((value & 0xFFFF).to_bytes(2, "little"), "big"), b"")
            self._at = 0
