"""A physical address that no memory and no device answers -> the range of such addresses around it."""

from collections.abc import Iterator

from kinst.runtime.machine.address_space import AddressSpace
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.physical.frames import TRAMPOLINE_FRAMES
from kinst.targets.machines.machine import MachineFacts, Space


def unclaimed_around(address: int, facts: MachineFacts, memory: PhysicalMemory) -> range | None:
    """The physical addresses around one at which the machine has neither memory nor a device, below those that the
    tracer uses; None if it has something there."""
    taken = sorted((one.start, one.stop) for one in _taken(facts, memory))
    if address >= TRAMPOLINE_FRAMES or any(start <= address < stop for start, stop in taken):
        return None
    below = max((stop for _, stop in taken if stop <= address), default=0)
    above = min((start for start, _ in taken if start > address), default=TRAMPOLINE_FRAMES)
    return range(below, above)


def nothing_at(address: int | None, space: AddressSpace, facts: MachineFacts, memory: PhysicalMemory) -> range | None:
    """The same for a virtual address of the running CPU; None if something answers, or nothing is mapped there."""
    physical = address if address is None or space.is_physical else space.observe(address)
    return None if physical is None else unclaimed_around(physical, facts, memory)


def _taken(facts: MachineFacts, memory: PhysicalMemory) -> Iterator[range]:
    for region in memory.regions:
        if region.base < TRAMPOLINE_FRAMES:
            yield range(region.base, region.base + region.size)
    for device in facts.devices.values():
        if device.space is Space.MEMORY:
            yield range(device.address, device.address + device.size)
