"""The disks and other devices that the user wants -> virtio devices, in slots or on a PCI bus."""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.pc.pci_bus import (
    ConfigurationAddress,
    ConfigurationData,
    HostBridge,
    PciFunction,
    PciMemory,
)
from kinst.runtime.machine.devices.virtio.block import VirtioBlock
from kinst.runtime.machine.devices.virtio.console import VirtioConsole
from kinst.runtime.machine.devices.virtio.device import Model, VirtioDevice
from kinst.runtime.machine.devices.virtio.entropy import VirtioEntropy
from kinst.runtime.machine.devices.virtio.mmio import VirtioSlots
from kinst.runtime.machine.devices.virtio.pci import SIZE, VirtioPci
from kinst.runtime.machine.machine import Machine
from kinst.targets.errors import MachineError

_PCI_DEVICES: Final = 31  # besides the bridge


def virtio_slots(machine: Machine, stride: int, order: Sequence[int], line: Callable[[int], Line]) -> VirtioSlots:
    """A row of slots with the devices in the order in which the guest finds them.

    Args:
        machine: the machine, which has the user's choices.
        stride: bytes of a slot.
        order: the numbers of all slots, in the order of the device tree.
        line: the interrupt line of a slot.

    Raises:
        MachineError: there are more devices than slots.
    """
    models = _models(machine, len(order))
    devices = {slot: VirtioDevice(machine, model, line(slot)) for slot, model in zip(order, models, strict=False)}
    return VirtioSlots(len(order) * stride, stride, devices)


def pci_interrupts(numbers: Sequence[int]) -> dict[int, int]:
    """The interrupt of each device on the PCI bus, by the device's number."""
    return {device: numbers[(device - 1) % len(numbers)] for device in range(1, _PCI_DEVICES + 1)}


def attach_pci(machine: Machine, lines: dict[int, Line]) -> None:
    """Attach a PCI bus with the devices. `lines` are those for PCI, by interrupt number.

    Raises:
        MachineError: there are more devices than the bus can have.
    """
    models, facts = _models(machine, _PCI_DEVICES), machine.facts.devices
    ports, memory = facts["pci"], facts["pci-memory"]
    interrupts, shared = pci_interrupts(list(lines)), {number: _SharedLine(line) for number, line in lines.items()}
    functions: list[PciFunction] = [HostBridge()]
    for index, model in enumerate(models):
        number = interrupts[index + 1]
        functions.append(VirtioPci(machine, model, shared[number].input(), number, memory.address + index * SIZE))
    address = ConfigurationAddress()
    machine.attach_ports(address, ports.address, is_whole=True)
    machine.attach_ports(ConfigurationData(address, functions), ports.address + address.size)
    machine.attach(PciMemory(memory.address, memory.size, functions), memory.address)


def has_devices(machine: Machine) -> bool:
    """Whether the user wants any."""
    return bool(machine.disks) or machine.rng_seed is not None or machine.has_virtio_console


def _models(machine: Machine, most: int) -> list[Model]:
    models: list[Model] = [VirtioBlock(disk) for disk in machine.disks]
    if machine.rng_seed is not None:
        models.append(VirtioEntropy(machine.rng_seed))
    if machine.has_virtio_console:
        models.append(VirtioConsole(machine.console_output, machine.serial_line))
    if len(models) > most:
        raise MachineError(f"{machine.facts.name}: has room for {most} disks and other devices, not for {len(models)}")
    return models


class _SharedLine:
    """An interrupt line that is high while one of its inputs is."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._inputs: list[bool] = []

    def input(self) -> Line:
        """Add an input."""
        number = len(self._inputs)
        self._inputs.append(False)

        def drive(level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
            self._inputs[number] = level
            self._line(any(self._inputs))

        return drive
