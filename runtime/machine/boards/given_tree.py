"""The device tree that a user gives, `--dtb` -> the one that the guest gets: as QEMU does with -dtb, memory, command
line, initial file system and seed are those of the machine, and CPUs that it lacks are removed.
"""

from typing import Final

from kinst.runtime.machine.boards.initrd import describe
from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.runtime.machine.devices.fdt_reader import unflatten
from kinst.runtime.machine.machine import Machine
from kinst.targets.errors import MachineError

_CELLS: Final = (1, 2)  # 32-bit words of an address or of a size


def adapted(machine: Machine, given: bytes | memoryview, initrd: range | None, size: int | None = None) -> bytes:
    """The flattened tree, padded to `size` bytes if that is given.

    Raises:
        MachineError: it is damaged, does not fit, or cannot describe the machine's memory.
    """
    try:
        tree = unflatten(bytes(given))
        _set_memory(tree.root, machine.facts.ram_base, machine.ram_size)
        _drop_cpus(tree.root, len(machine.cpus))
    except MachineError as error:
        raise MachineError(f"--dtb: {error}") from None
    chosen = _child(tree.root, "chosen") or tree.root.add("chosen", {})
    if machine.command_line is not None:
        chosen.properties["bootargs"] = machine.command_line
    describe(chosen, initrd)
    if machine.kaslr_seed is not None:
        chosen.properties["kaslr-seed"] = machine.kaslr_seed.to_bytes(8, "big")
    blob = flatten(tree.root, size=size or 0, reserved=tree.reservations)
    if size is not None and len(blob) > size:
        raise MachineError(f"--dtb: it has {len(blob):#x} bytes, and the guest can be given {size:#x}")
    return blob


def _child(node: Node, name: str) -> Node | None:
    return next((child for child in node.children if child.name == name), None)


def _cells(node: Node, name: str, default: int) -> int:
    value = node.properties.get(name, default.to_bytes(4, "big"))
    assert isinstance(value, bytes), "the reader gives bytes"
    count = int.from_bytes(value, "big")
    if count not in _CELLS:
        raise MachineError(f"damaged: {name} of {node.name or '/'} is {count}, and may be 1 or 2")
    return count


def _set_memory(root: Node, base: int, size: int) -> None:
    """One node for all of the machine's RAM, in place of those that the tree has."""
    root.keep(lambda child: child.properties.get("device_type") != b"memory\0")
    widths = _cells(root, "#address-cells", 2), _cells(root, "#size-cells", 1)
    cells = b""
    for value, width in zip((base, size), widths, strict=True):
        if value >> 32 * width:
            raise MachineError(f"{value:#x}, of the machine's RAM, does not fit into {width} cell of its root node")
        cells += value.to_bytes(4 * width, "big")
    root.add(f"memory@{base:x}", {"device_type": "memory", "reg": cells})


def _drop_cpus(root: Node, count: int) -> None:
    """Remove CPUs that the machine lacks: guests report a CPU that does not start as broken."""
    cpus = _child(root, "cpus")
    if cpus is not None:
        cpus.keep(lambda child: _number(child) < count)


def _number(cpu: Node) -> int:
    """The number of a CPU; -1 for other nodes, such as cpu-map, which stay."""
    value = cpu.properties.get("reg", b"")
    assert isinstance(value, bytes), "the reader gives bytes"
    return int.from_bytes(value, "big") if cpu.properties.get("device_type") == b"cpu\0" else -1
