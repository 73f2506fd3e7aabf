"""A virtio transport without a device (virtio 1.2, 4.2.2): drivers read its identity and leave it alone."""

from dataclasses import dataclass
from typing import Final

SLOT_SIZE: Final = 0x200
_MAGIC, _LEGACY_VERSION, _VENDOR = 0x74726976, 1, 0x554D4551  # "virt", "QEMU"
_REGISTERS: Final = {0x000: _MAGIC, 0x004: _LEGACY_VERSION, 0x008: 0, 0x00C: _VENDOR}  # device id 0: the slot is empty


@dataclass(frozen=True, slots=True)
class EmptyVirtioSlots:
    """A row of empty slots."""

    size: int

    def read(self, offset: int, size: int) -> int:
        """A register: magic, version or vendor; everything else is 0."""
        return _REGISTERS.get(offset % SLOT_SIZE, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Do nothing: there is no device."""
