"""A flattened device tree -> its nodes and reserved memory (Devicetree Specification 0.4, chapter 5), checked: a user's
file is hostile input.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kinst.runtime.machine.devices.fdt import Node
from kinst.targets.errors import MachineError

_MAGIC: Final = 0xD00DFEED
_HEADER: Final = struct.Struct(">10I")
_RESERVATION: Final = struct.Struct(">2Q")
_VERSION, _OLDEST = 17, 16
_LARGEST: Final = 4 << 20  # bytes; Linux for arm64 maps 2 MiB, and QEMU appends as much free space to its trees
_DEEPEST: Final = 64  # levels of nodes: readers in guests recurse


class _Token(IntEnum):
    BEGIN_NODE = 1
    END_NODE = 2
    PROPERTY = 3
    NOP = 4
    END = 9


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
    if len(blob) < _HEADER.size or int.from_bytes(blob[:4], "big") != _MAGIC:
        raise MachineError("no flattened device tree: it does not begin with d0 0d fe ed")
    fields = _HEADER.unpack_from(blob)
    _, total, structure, strings, reserved, version, compatible, _, strings_size, structure_size = fields
    if total > min(len(blob), _LARGEST):
        raise MachineError(f"damaged: it says that it has {total:#x} bytes, and may have {min(len(blob), _LARGEST):#x}")
    if compatible > _VERSION or version < _OLDEST:
        raise MachineError(f"a device tree of version {version}, which is not {_VERSION}")
    if version < _VERSION:  # the size came with 17; structure and strings end it in either order
        structure_size = (strings if strings > structure else total) - structure
    for what, start, size in (("structure", structure, structure_size), ("strings", strings, strings_size)):
        if start + size > total or start < _HEADER.size or size < 0:
            raise MachineError(f"damaged: its {what} block, {size:#x} bytes at {start:#x}, is not in it")
    reader = _Structure(blob[structure : structure + structure_size], blob[strings : strings + strings_size])
    return Tree(reader.read(), _reservations(blob[:total], reserved))


def _reservations(blob: bytes, at: int) -> tuple[tuple[int, int], ...]:
    """Pairs up to one of zeros."""
    found: list[tuple[int, int]] = []
    while at + _RESERVATION.size <= len(blob):
        address, size = _RESERVATION.unpack_from(blob, at)
        if not address and not size:
            return tuple(found)
        found.append((address, size))
        at += _RESERVATION.size
    raise MachineError("damaged: the list of reserved memory does not end in it")


class _Structure:
    """The structure block, read from its start to its end: tokens, each of which begins at a multiple of 4."""

    def __init__(self, content: bytes, strings: bytes) -> None:
        self._content = content
        self._strings = strings
        self._at = 0
        self._root: Node | None = None
        self._above: list[Node] = []  # the nodes that have not ended

    def read(self) -> Node:
        while (token := self._word()) != _Token.END:
            match token:
                case _Token.BEGIN_NODE:
                    self._begin()
                case _Token.END_NODE if self._above:
                    self._above.pop()
                case _Token.PROPERTY if self._above:
                    self._property(self._above[-1])
                case _Token.NOP:
                    pass
                case _:
                    raise MachineError(f"damaged: token {token:#x} at {self._at - 4:#x} of its structure block")
        if self._root is None or self._above:
            raise MachineError("damaged: its structure block ends before its nodes do")
        return self._root

    def _begin(self) -> None:
        name = _text(self._content, self._at)
        self._at += len(name) + 4 & ~3
        node = Node(name.decode("ascii", "backslashreplace"))
        if self._above:
            self._above[-1].children.append(node)
        elif self._root is not None:
            raise MachineError("damaged: it has more than one root node")
        else:
            self._root = node
        self._above.append(node)
        if len(self._above) > _DEEPEST:
            raise MachineError(f"damaged: more than {_DEEPEST} nodes in each other")

    def _property(self, node: Node) -> None:
        size, at = self._word(), self._word()
        name = _text(self._strings, at).decode("ascii", "backslashreplace")
        if self._at + size > len(self._content):
            raise MachineError(f"damaged: property {name} of {node.name or '/'} goes on behind its structure block")
        node.properties[name] = self._content[self._at : self._at + size]
        self._at += size + 3 & ~3

    def _word(self) -> int:
        at = self._at
        if at + 4 > len(self._content):
            raise MachineError("damaged: its structure block ends before its nodes do")
        self._at += 4
        return int.from_bytes(self._content[at : at + 4], "big")


def _text(block: bytes, at: int) -> bytes:
    end = block.find(b"\0", at)
    if not 0 <= at < len(block) or end < 0:
        raise MachineError(f"damaged: a name at {at:#x} does not end in its block")
    return block[at:end]
