"""A flattened device tree -> its nodes, with their values, and reserved memory: what a board adapts for its guest."""

from typing import Final

from kinst.runtime.machine.devices.fdt import Node
from kinst.targets.device_tree import Branch, TreeError, read_blob
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

_LARGEST: Final = 4 << 20  # bytes; Linux for arm64 maps 2 MiB, and QEMU appends as much free space to its trees


@dataclass(frozen=True, slots=True)
class Tree:
    """A device tree. Values of properties are bytes."""

    root: Node
    reservations: tuple[tuple[int, int], ...]  # physical address and size of memory that is not to be used


def unflatten(blob: bytes) -> Tree:
    """Read a blob.

    Raises:
        MachineError: what is wrong with it.
    """
    try:
        found = read_blob(blob, _LARGEST)
    except TreeError as error:
        raise MachineError(str(error)) from None
    return Tree(_node(found.root, blob), found.reservations)


def _node(branch: Branch, blob: bytes) -> Node:
    values = {name: blob[one.offset : one.offset + one.size] for name, one in branch.values.items()}
    return Node(branch.name, {**values}, [_node(child, blob) for child in branch.children])
