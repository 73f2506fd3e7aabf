"""The disks of `--disk` -> what a board of a board file has for them: slots for virtio devices, or SD cards in the
sockets of its host controllers."""

from typing import Final

from kinst.runtime.machine.devices.sd.card import SdCard
from kinst.runtime.machine.devices.sd.socket import Socket
from kinst.runtime.machine.machine import Machine
from kinst.targets.errors import MachineError
from kinst.targets.machines.kinds import KINDS
from kinst.targets.machines.machine import DeviceFacts

_SOCKET: Final = "socket"  # the property of a host controller


class Sockets:
    """The sockets of a board, by their numbers."""

    def __init__(self, machine: Machine) -> None:
        """Put the cards in. Raises MachineError: a disk, or another device that the user wants, has no place."""
        devices = machine.facts.devices.values()
        hosts = [one for one in devices if one.model in KINDS and _SOCKET in KINDS[one.model].properties]
        numbers = sorted({one.properties[_SOCKET] for one in hosts})
        self._sockets = {number: Socket() for number in numbers}
        if any(one.model == "virtio-mmio" for one in devices):
            return  # the disks are there
        if len(machine.disks) > len(numbers):
            raise MachineError(_lacking(machine, len(numbers)))
        if machine.rng_seed is not None or machine.has_virtio_console:
            raise MachineError(f"{machine.facts.name}: has no virtio-mmio for a source of random numbers or a console")
        for number, disk in zip(numbers, machine.disks, strict=False):
            self._sockets[number] = Socket(SdCard(disk))

    def of(self, facts: DeviceFacts) -> Socket:
        """The socket of a host controller."""
        return self._sockets[facts.properties[_SOCKET]]


def _lacking(machine: Machine, sockets: int) -> str:
    if not sockets:
        return f"{machine.facts.name}: has nowhere to put a disk: its board file names no virtio-mmio and no SD host"
    return f"{machine.facts.name}: has room for {sockets} disks, as SD cards, not for {len(machine.disks)}"
