"""A guest's RAM before it begins -> the same, with a range that its device tree keeps from it."""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.machine.devices.fdt import flatten
from kinst.runtime.machine.devices.fdt_reader import Tree, unflatten
from kinst.runtime.readout.memory import Space, UnreadableError
from kinst.targets.errors import MachineError
from kinst.targets.image import Image

_MAGIC: Final = bytes.fromhex("d00dfeed")
_HEADER: Final = struct.Struct(">10I")
_SEED: Final = "kaslr-seed"
_RELOCATIONS: Final = (("__rela_dyn_start", "__rela_dyn_end"), ("__rela_start", "__rela_end"))  # riscv64, arm64


def may_move_itself(image: Image) -> bool:
    """Whether a kernel has what it needs to move itself: a file with debug information may have been left without its
    relocations, which the one that boots has."""
    labels = ([image.symbols.address_of(name) for name in names] for names in _RELOCATIONS)
    return all(None in pair or pair[0] != pair[1] for pair in labels)


def reserve(memory: SharedRam, start: int, size: int, *, keeps_seed: bool) -> None:
    """Reserve physical addresses, and take the seed away by which a kernel would move that cannot.

    Raises:
        MachineError: there is no device tree in memory.
    """
    for address, blob, tree in trees_in(memory):
        for child in tree.root.children:
            if child.name == "chosen" and not keeps_seed:
                child.properties.pop(_SEED, None)
        memory.write(address, again(blob, tree, (*tree.reservations, (start, size))))


def again(blob: bytes, tree: Tree, reserved: Sequence[tuple[int, int]]) -> bytes:
    """The blob of a tree that was changed, as long as it was; `reserved`: memory that is not to be used."""
    return flatten(tree.root, _HEADER.unpack_from(blob)[7], len(blob), reserved)


def trees_in(memory: SharedRam) -> list[tuple[int, bytes, Tree]]:
    """The device trees of machines, with their addresses. Raises MachineError: there is none."""
    if places := [*_trees(memory)]:
        return places
    raise MachineError("the guest has no device tree in its memory, by which it could be told what is not its own")


def _trees(memory: SharedRam) -> Iterator[tuple[int, bytes, Tree]]:
    """The device trees of machines, with their addresses: a kernel's file may have others inside."""
    for address in memory.find(_MAGIC):
        try:
            _, total, *_ = _HEADER.unpack(memory.read(Space.PHYSICAL, address, _HEADER.size))
            blob = memory.read(Space.PHYSICAL, address, total)
            tree = unflatten(blob)
        except (UnreadableError, MachineError):
            continue  # the same four bytes by chance
        if address % 8 == 0 and any(child.name.startswith("memory") for child in tree.root.children):
            yield address, blob, tree
