"""Buses with nothing on them: what drivers read before they give up."""

from kinst.runtime.machine.devices.pci_ecam import PciEcam
from kinst.runtime.machine.devices.virtio.mmio import SLOT_SIZE, VirtioSlots


def test_every_virtio_slot_says_that_it_is_empty() -> None:
    slots = VirtioSlots(0x4000, SLOT_SIZE, {})
    for slot in range(0, 0x4000, SLOT_SIZE):
        assert slots.read(slot, 4).to_bytes(4, "little") == b"virt"
        assert (slots.read(slot + 4, 4), slots.read(slot + 8, 4)) == (1, 0)


def test_a_host_bridge_is_alone_on_its_bus() -> None:
    ecam = PciEcam(1 << 20)
    assert ecam.read(0, 4) == 0x0008_1B36
    assert (ecam.read(0, 2), ecam.read(2, 2), ecam.read(0x0B, 1), ecam.read(0x0E, 1)) == (0x1B36, 8, 6, 0)
    assert (ecam.read(0x1000, 4), ecam.read(0x8000, 2), ecam.read(0x8002, 1)) == (0xFFFF_FFFF, 0xFFFF, 0xFF)
