"""An initial file system -> RAM, at a place that the kernel does not use before it has read it."""

from typing import Final

from kinst.runtime.machine.devices.fdt import Node
from kinst.runtime.machine.machine import Machine
from kinst.targets.errors import MachineError

_PAGE: Final = 0x1000


def place_below(machine: Machine, end: int, lowest: int) -> range | None:
    """Write it so that it ends at or below `end`. Returns its physical addresses; None: there is no initial file
    system.

    Raises:
        MachineError: it does not fit above `lowest`.
    """
    if machine.initrd is None:
        return None
    start = end - len(machine.initrd) & -_PAGE
    if start < lowest:
        raise MachineError(f"no room for an initrd of {len(machine.initrd):#x} bytes below {end:#x}: more --memory")
    place = range(start, start + len(machine.initrd))
    machine.files.refuse(place, "the initrd")
    machine.memory.write(start, bytes(machine.initrd))
    return place


def describe(chosen: Node, place: range | None) -> None:
    """Add its place to the chosen node of a device tree (Documentation/devicetree/usage-model.rst)."""
    if place is not None:
        chosen.properties["linux,initrd-start"] = place.start.to_bytes(8, "big")
        chosen.properties["linux,initrd-end"] = place.stop.to_bytes(8, "big")
