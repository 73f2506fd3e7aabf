"""A guest's RAM before it begins -> the same, with a device tree that does not tell of the end of that RAM."""

from collections.abc import Iterator
from typing import Final

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.reserving import again, trees_in
from kinst.runtime.machine.devices.fdt import Node
from kinst.targets.errors import MachineError

_CELL: Final = 4
_DEFAULTS: Final = (("#address-cells", 2), ("#size-cells", 1))  # Devicetree Specification 0.4, 2.3.5


def keep_back(memory: SharedRam, kept: range) -> None:
    """Take physical addresses at the end of a range of RAM from what the guest is told of.

    Raises:
        MachineError: there is no device tree in memory, or it does not tell of these.
    """
    for address, blob, tree in trees_in(memory):
        shorter = [_without(tree.root, node, kept) for node in tree.root.children if _is_memory(node)]
        if not any(shorter):
            raise MachineError(f"the guest's device tree does not tell of memory up to {kept.stop:#x}")
        memory.write(address, again(blob, tree, tree.reservations))


def _is_memory(node: Node) -> bool:
    return node.properties.get("device_type") == b"memory\0" and isinstance(node.properties.get("reg"), bytes)


def _without(root: Node, node: Node, kept: range) -> bool:
    """Shorten the range that the node has around the beginning of `kept`; whether it has one."""
    address, size = (_CELL * _cells(root, *one) for one in _DEFAULTS)
    value, is_any, shorter = node.properties["reg"], False, b""
    assert isinstance(value, bytes), "it was chosen so"
    for start, length in _ranges(value, address, size):
        is_it = start < kept.start < start + length <= kept.stop
        is_any |= is_it
        shorter += start.to_bytes(address, "big") + (kept.start - start if is_it else length).to_bytes(size, "big")
    node.properties["reg"] = shorter
    return is_any


def _ranges(value: bytes, address: int, size: int) -> Iterator[tuple[int, int]]:
    for at in range(0, len(value) - address - size + 1, address + size):
        middle = at + address
        yield int.from_bytes(value[at:middle], "big"), int.from_bytes(value[middle : middle + size], "big")


def _cells(root: Node, name: str, default: int) -> int:
    value = root.properties.get(name)
    return int.from_bytes(value, "big") if isinstance(value, bytes) else default
