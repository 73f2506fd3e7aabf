"""Virtio over PCI (virtio 1.2, 4.1): the configuration space of a function, and the registers in its memory.

The parts of its memory, a page each, are described by capabilities of 16 bytes, or 20 for notifications:

    vendor-specific (0x09) 1, next 1, length 1, which part 1, base address register 1, id and padding 3, offset 4,
    size 4 (notifications: distance between those of two queues 4)

It is a modern device with INTx. There is no part for firmware that cannot reach memory (VIRTIO_PCI_CAP_PCI_CFG), and
no MSI-X, which has no advantage where devices and CPUs take turns.
"""

import struct
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.pc.pci_bus import Header
from kinst.runtime.machine.devices.virtio.device import Model, VirtioDevice
from kinst.runtime.machine.machine import Machine

SIZE: Final = 0x4000
_VENDOR, _FIRST_IDENTITY, _REVISION = 0x1AF4, 0x1040, 1
_SUBSYSTEM: Final = 0x1100_1AF4  # QEMU's
# Offsets in the configuration space (PCI Local Bus 3.0, 6.1)
_IDENTITY, _COMMAND, _CLASS, _BASE, _SUBSYSTEM_ID, _CAPABILITIES, _INTERRUPT = 0x00, 0x04, 0x08, 0x10, 0x2C, 0x34, 0x3C
_STATUS: Final = 0x06
_MEMORY, _BUS_MASTER, _NO_INTERRUPT = 1 << 1, 1 << 2, 1 << 10  # command
_INTERRUPT_STATUS, _HAS_CAPABILITIES = 1 << 3, 1 << 4  # status
_PIN_A: Final = 1
_FIRST_CAPABILITY, _CAPABILITY_SIZE, _VENDOR_SPECIFIC, _DISTANCE = 0x40, 20, 0x09, 4
_COMMON, _NOTIFY, _ISR, _DEVICE = range(1, 5)  # parts, as capabilities number them
_PART_SIZE: Final = 0x1000
_PARTS: Final = (_COMMON, _ISR, _DEVICE, _NOTIFY)
# features offered: half, value; accepted: half, value; MSI-X vector, queues; status, generation, selected queue;
# of the queue: size, vector, ready, place of notifications, addresses of the three areas (virtio 1.2, 4.1.4.3)
_LAYOUT: Final = struct.Struct("<IIIIHHBBHHHHHQQQ")
_NO_VECTOR: Final = 0xFFFF
_AREAS: Final = range(0x20, 0x38)


class VirtioPci:
    """A virtio device as a `PciFunction`."""

    def __init__(self, machine: Machine, model: Model, line: Line, number: int, address: int) -> None:
        """`line` is the interrupt with this number, and `address` where the memory is at first, as a BIOS sets them."""
        self._line = line
        self._header = Header(
            _words(model, number, address), {_COMMAND: 0x0406, _BASE: -SIZE & 0xFFFF_FFFF, _INTERRUPT: 0xFF}
        )
        self._device = VirtioDevice(machine, model, lambda _level: self._drive())

    # -- configuration space ------------------------------------------------------------------------------------------

    def read(self, offset: int) -> int:
        """A byte of the configuration space."""
        value = self._header.read(offset)
        return value | _INTERRUPT_STATUS if offset == _STATUS and self._device.interrupts else value

    def write(self, offset: int, value: int) -> None:
        """Write a byte of the configuration space."""
        self._header.write(offset, value)
        self._drive()

    @property
    def memory(self) -> range:
        """The addresses of its registers; empty unless the command register enables memory."""
        if not self._header.word(_COMMAND) & _MEMORY:
            return range(0)
        start = self._header.word(_BASE)
        return range(start, start + SIZE)

    def _drive(self) -> None:
        is_quiet = self._header.word(_COMMAND) & _NO_INTERRUPT
        self._line(bool(self._device.interrupts and not is_quiet))

    # -- registers ----------------------------------------------------------------------------------------------------

    def load(self, offset: int, size: int) -> int:
        """Read a register."""
        part, at = _PARTS[offset // _PART_SIZE], offset % _PART_SIZE
        if part == _COMMON:
            return int.from_bytes(self._common()[at : at + size], "little")
        if part == _DEVICE:
            return self._device.configuration(at, size)
        if part == _ISR and not at:
            interrupts = self._device.interrupts
            self._device.acknowledge(interrupts)  # a read clears it (4.1.4.5)
            return interrupts
        return 0

    def store(self, offset: int, size: int, value: int) -> None:
        """Write a register."""
        part, at = _PARTS[offset // _PART_SIZE], offset % _PART_SIZE
        if part == _NOTIFY:
            self._device.notify(value & 0xFFFF)
        elif part == _COMMON:
            self._write_common(at, value & 0xFFFF_FFFF)

    def _common(self) -> bytes:
        device, queue = self._device, self._device.queue()
        features = (device.offered_half, device.offered(), device.accepted_half, device.accepted())
        state = (_NO_VECTOR, len(device.queues), device.status, 0, device.queue_number)
        if queue is None:
            return _LAYOUT.pack(*features, *state, 0, _NO_VECTOR, 0, 0, 0, 0, 0)
        return _LAYOUT.pack(
            *features, *state, queue.size, _NO_VECTOR, queue.is_ready, device.queue_number, *queue.areas
        )

    def _write_common(self, at: int, value: int) -> None:
        device = self._device
        match at:
            case 0x00:
                device.show_offered(value)
            case 0x08:
                device.show_accepted(value)
            case 0x0C:
                device.accept(value)
            case 0x14:
                device.set_status(value & 0xFF)
            case 0x16:
                device.select_queue(value & 0xFFFF)
            case _:
                self._write_queue(at, value)

    def _write_queue(self, at: int, value: int) -> None:
        queue = self._device.queue()
        if queue is None:
            return
        if at == 0x18:
            queue.resize(value & 0xFFFF)
        elif at == 0x1C:
            queue.make_ready(is_ready=bool(value & 1))
        elif at in _AREAS:
            queue.place((at - _AREAS.start) >> 3, at >> 2 & 1, value)


def _words(model: Model, number: int, address: int) -> dict[int, int]:
    """The configuration space as a BIOS leaves it: memory and DMA on, a base address, an interrupt."""
    words = {
        _IDENTITY: (_FIRST_IDENTITY + model.identity) << 16 | _VENDOR,
        _COMMAND: _HAS_CAPABILITIES << 16 | _MEMORY | _BUS_MASTER,
        _CLASS: model.class_code << 16 | _REVISION,
        _BASE: address,
        _SUBSYSTEM_ID: _SUBSYSTEM,
        _CAPABILITIES: _FIRST_CAPABILITY,
        _INTERRUPT: _PIN_A << 8 | number,
    }
    for index, part in enumerate(_PARTS):
        at = _FIRST_CAPABILITY + _CAPABILITY_SIZE * index
        following = at + _CAPABILITY_SIZE if index + 1 < len(_PARTS) else 0
        words[at] = part << 24 | _CAPABILITY_SIZE << 16 | following << 8 | _VENDOR_SPECIFIC
        words |= {at + 8: index * _PART_SIZE, at + 12: _PART_SIZE, at + 16: _DISTANCE if part == _NOTIFY else 0}
    return words
