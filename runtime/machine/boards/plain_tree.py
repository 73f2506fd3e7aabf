"""The device tree of a plain board and its place in memory: the user's own of `--dtb`, or a small one of what the board
file says."""

from collections.abc import Mapping, Sequence
from typing import Final

from kinst.runtime.machine.boards.given_tree import adapted
from kinst.runtime.machine.boards.initrd import describe, place_below
from kinst.runtime.machine.devices.fdt import Node, cells64, flatten
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.u_boot import HEADER, tree_place
from kinst.runtime.machine.machine import Machine
from kinst.targets.errors import MachineError
from kinst.targets.machines.machine import DeviceFacts

_SIZE: Final = 0x2_0000
_ALIGNMENT: Final = 0x20_0000
_COMPATIBLE: Final = {
    "bcm2835-aux-uart": "brcm,bcm2835-aux-uart",
    "dw-apb-uart": "snps,dw-apb-uart",
    "meson-uart": "amlogic,meson-gx-uart",
    "mvebu-uart": "marvell,armada-3700-uart",
    "ns16550": "ns16550a",
    "pl011": "arm,pl011",
    "sifive-uart": "sifive,uart0",
}


def place_tree(machine: Machine, image: Loaded) -> int:
    """Write the tree if the board passes one on. Returns its physical address; 0: there is none.

    Raises:
        MachineError: there is no room for it, or --dtb has nobody to go to.
    """
    start = machine.facts.start
    assert start is not None, "a plain board says how it starts"
    following = {} if start.next is None else start.next.registers
    if "fdt" not in (*start.registers.values(), *following.values()) and start.tree is None:
        if machine.device_tree is not None:
            raise MachineError(f'--dtb: {machine.facts.name} passes on no device tree: [start] needs x0 = "fdt"')
        place_below(machine, _end(machine), image.end)
        return 0
    size = tree_size(machine.device_tree)
    address = _place(machine, image, size, start.tree)
    initrd = place_below(machine, _end(machine), max(image.end, address + size))
    if machine.device_tree is None:
        blob = flatten(_tree(machine, initrd), size=size)
    else:
        blob = adapted(machine, machine.device_tree, initrd, size=size)
    if address not in (
        machine.files.first_end,
        machine.files.first_tree,
    ):  # else it is in the .bss of a file that looks for it there
        machine.files.refuse(range(address, address + len(blob)), "the device tree")
    machine.memory.write(address, blob)
    return address


def tree_size(given: bytes | memoryview | None) -> int:
    """The room for the device tree, in bytes: guests add to it."""
    return max(_SIZE, 0 if given is None else len(given) + 0x1000)


def _place(machine: Machine, image: Loaded, size: int, tree: int | str | None) -> int:
    """Where the board file says, or else where an arm64 U-Boot looks for it."""
    if isinstance(tree, int):
        return tree
    start = machine.facts.start
    if start is not None and start.next is not None:  # it is for what the image starts
        found = machine.files.first_end if tree is not None else machine.files.first_tree
        return free_place(machine, image, size) if found is None else found
    lowest, content = _content(machine, image)
    found = tree_place(content, lowest)
    if found is None and tree is not None:
        found = _behind(image)
    return free_place(machine, image, size) if found is None else found


def _content(machine: Machine, image: Loaded) -> tuple[int, bytes]:
    """The image's lowest physical address, and what is there."""
    lowest, size = min(((start, length) for _, start, length in image.segments), default=(0, 0))
    return lowest, machine.memory.read(lowest, min(size, HEADER))


def _behind(image: Loaded) -> int:
    """The physical address after the last byte that was loaded from the image's file, without its .bss."""
    sizes = {segment.address + image.bias: segment.file_size for segment in image.image.segments}
    return max((physical + sizes.get(virtual, 0) for virtual, physical, _ in image.segments), default=0)


def _end(machine: Machine) -> int:
    return machine.facts.ram_base + machine.ram_size


def free_place(machine: Machine, image: Loaded, size: int, taken: Sequence[range] = ()) -> int:
    """A place in the middle of RAM, since firmware uses both ends of it, or behind the image.

    Raises:
        MachineError: there is none, besides the image and what is `taken`.
    """
    base, end = machine.facts.ram_base, _end(machine)
    middle = base + machine.ram_size // 2 & -_ALIGNMENT
    behind = -(-image.end // _ALIGNMENT) * _ALIGNMENT
    places = [*taken, *(range(start, start + length) for _, start, length in image.segments)]
    for address in (middle, behind, middle + _ALIGNMENT, behind + _ALIGNMENT, base):
        is_free = all(max(one.start, address) >= min(one.stop, address + size) for one in places)
        if base <= address and address + size <= end and is_free:
            return address
    raise MachineError(
        f"no room in RAM for {size:#x} bytes beside the image, which ends at {image.end:#x}: more --memory"
    )


def _tree(machine: Machine, initrd: range | None) -> Node:
    facts = machine.facts
    root = Node("", {"#address-cells": 2, "#size-cells": 2, "compatible": facts.name, "model": facts.name})
    chosen = root.add("chosen", {})
    if machine.command_line is not None:
        chosen.properties["bootargs"] = machine.command_line
    describe(chosen, initrd)
    root.add(f"memory@{facts.ram_base:x}", {"device_type": "memory", "reg": cells64(facts.ram_base, machine.ram_size)})
    cpus = root.add("cpus", {"#address-cells": 1, "#size-cells": 0, "timebase-frequency": facts.timebase})
    for cpu in machine.cpus:
        cpus.add(f"cpu@{cpu.number:x}", {"device_type": "cpu", "reg": cpu.number})
    root.add(
        "uart-clock", {"phandle": 1, "compatible": "fixed-clock", "#clock-cells": 0, "clock-frequency": 24_000_000}
    )
    for name, device in facts.devices.items():
        if device.model in _COMPATIBLE:
            path = _add_uart(root, device)
            if name == "console":
                chosen.properties["stdout-path"] = path
    return root


def _add_uart(root: Node, device: DeviceFacts) -> str:
    name = f"serial@{device.address:x}"
    node = root.add(name, {"compatible": _COMPATIBLE[device.model], "reg": cells64(device.address, device.size)})
    node.properties.update({"clocks": 1, "clock-frequency": 24_000_000})
    if "reg-shift" in device.properties:
        node.properties.update(device.properties)
    return f"/{name}"


def registers_at_start(machine: Machine, words: Mapping[str, int], cpu: int = 0) -> dict[str, int]:
    """The general registers that the board file names, with their values. `words`: what its words stand for, besides
    the CPU's number."""
    start = machine.facts.start
    assert start is not None, "a plain board says how it starts"
    words = {**words, "cpu": cpu}
    return {name: words[value] if isinstance(value, str) else value for name, value in start.registers.items()}
