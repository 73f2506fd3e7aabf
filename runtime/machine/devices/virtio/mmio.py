"""Virtio over memory-mapped registers (virtio 1.2, 4.2.2): a row of slots, in some of which there is a device.

Registers are 32 bits wide, up to 0x100, where the configuration space begins. A slot without a device has device id
0, which drivers ignore (4.2.2.2), and the older version, as in QEMU.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.devices.virtio.device import VirtioDevice

SLOT_SIZE: Final = 0x200
_MAGIC, _LEGACY, _MODERN, _VENDOR = 0x74726976, 1, 2, 0x554D4551  # "virt", "QEMU"
_EMPTY: Final = {0x000: _MAGIC, 0x004: _LEGACY, 0x00C: _VENDOR}  # device id 0: the slot is empty
_CONFIGURATION: Final = 0x100
_NO_SHARED_MEMORY: Final = range(0x0B0, 0x0C0)  # length and base, which are all ones for a region that does not exist
_AREAS: Final = range(0x080, 0x0B0)  # for each area of a queue 16 bytes: the address, low half and high half


@dataclass(slots=True)
class VirtioSlots:
    """A row of slots, `stride` bytes each. `devices` are by the number of their slot."""

    size: int
    stride: int
    devices: Mapping[int, VirtioDevice]
    _slots: dict[int, "_Slot"] = field(init=False)

    def __post_init__(self) -> None:
        self._slots = {number: _Slot(device) for number, device in self.devices.items()}

    def read(self, offset: int, size: int) -> int:
        """A register of a slot; 0 if there is none."""
        number, offset = divmod(offset, self.stride)
        slot = self._slots.get(number)
        return _EMPTY.get(offset % SLOT_SIZE, 0) if slot is None else slot.read(offset, size)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write to a register of a slot."""
        number, offset = divmod(offset, self.stride)
        slot = self._slots.get(number)
        if slot is not None and size == 4:
            slot.write(offset, value)


class _Slot:
    """The registers of a device."""

    def __init__(self, device: VirtioDevice) -> None:
        self._device = device

    def read(self, offset: int, size: int) -> int:
        if offset >= _CONFIGURATION:
            return self._device.configuration(offset - _CONFIGURATION, size)
        if size != 4:
            return 0
        return 0xFFFF_FFFF if offset in _NO_SHARED_MEMORY else self._register(offset)

    def _register(self, offset: int) -> int:
        device, queue = self._device, self._device.queue()
        match offset:
            case 0x008:
                return device.model.identity
            case 0x004:
                return _MODERN
            case 0x010:
                return device.offered()
            case 0x034:
                return 0 if queue is None else queue.maximum
            case 0x044:
                return int(queue is not None and queue.is_ready)
            case 0x060:
                return device.interrupts
            case 0x070:
                return device.status
        return _EMPTY.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        device = self._device
        match offset:
            case 0x014:
                device.show_offered(value)
            case 0x020:
                device.accept(value)
            case 0x024:
                device.show_accepted(value)
            case 0x030:
                device.select_queue(value)
            case 0x050:
                device.notify(value)
            case 0x064:
                device.acknowledge(value)
            case 0x070:
                device.set_status(value & 0xFF)
            case _:
                self._write_queue(offset, value)

    def _write_queue(self, offset: int, value: int) -> None:
        queue = self._device.queue()
        if queue is None:
            return
        if offset == 0x038:
            queue.resize(value)
        elif offset == 0x044:
            queue.make_ready(is_ready=bool(value & 1))
        elif offset in _AREAS:
            queue.place(offset - _AREAS.start >> 4, offset >> 2 & 3, value)
