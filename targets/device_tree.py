"""A flattened device tree -> its nodes and reserved memory (Devicetree Specification 0.4, chapter 5), checked: a user's
file is hostile input. Values stay where they are in the blob: FIT images have whole kernels in them.
"""

import struct
from collections.abc import Iterator
from dataclasses import field
from enum import IntEnum
from typing import Final

from kinst.targets.values import dataclass

MAGIC: Final = b"\xd0\x0d\xfe\xed"
HEADER: Final = struct.Struct(">10I")  # magic, total size, offsets of structure, strings and reservations, version, ...
_RESERVATION: Final = struct.Struct(">2Q")
_VERSION, _OLDEST = 17, 16
_DEEPEST: Final = 64  # levels of nodes: readers in guests recurse
_MOST_NODES: Final = 100_000


class TreeError(ValueError):
    """What is wrong with a tree."""


class _Token(IntEnum):
    BEGIN_NODE = 1
    END_NODE = 2
    PROPERTY = 3
    NOP = 4
    END = 9


@dataclass(frozen=True, slots=True)
class Value:
    """Where the value of a property is in the blob."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Branch:
    """One node."""

    name: str
    values: dict[str, Value] = field(default_factory=dict)
    children: list["Branch"] = field(default_factory=list)

    def child(self, name: str) -> "Branch | None":
        """The first child of that name."""
        return next((one for one in self.children if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Blob:
    """A tree that was read."""

    root: Branch
    reservations: tuple[tuple[int, int], ...]  # physical address and size of memory that is not to be used
    total: int  # bytes of the tree: what follows is no part of it
    structure: tuple[int, int]  # offset and size of the structure block


def read_blob(blob: bytes, largest: int) -> Blob:
    """Read a blob of at most `largest` bytes.

    Raises:
        TreeError: what is wrong with it.
    """
    if len(blob) < HEADER.size or blob[:4] != MAGIC:
        raise TreeError("no flattened device tree: it does not begin with d0 0d fe ed")
    fields = HEADER.unpack_from(blob)
    _, total, structure, strings, reserved, version, compatible, _, strings_size, structure_size = fields
    if total > min(len(blob), largest):
        raise TreeError(f"damaged: it says that it has {total:#x} bytes, and may have {min(len(blob), largest):#x}")
    if compatible > _VERSION or version < _OLDEST:
        raise TreeError(f"a device tree of version {version}, which is not {_VERSION}")
    if version < _VERSION:  # the size came with 17; structure and strings end it in either order
        structure_size = (strings if strings > structure else total) - structure
    for what, start, size in (("structure", structure, structure_size), ("strings", strings, strings_size)):
        if start + size > total or start < HEADER.size or size < 0:
            raise TreeError(f"damaged: its {what} block, {size:#x} bytes at {start:#x}, is not in it")
    reader = _Structure(blob, structure, structure + structure_size, blob[strings : strings + strings_size])
    reservations = tuple(_reservations(blob, reserved, total))
    return Blob(reader.read(), reservations, total, (structure, structure_size))


def _reservations(blob: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Pairs up to one of zeros."""
    while at + _RESERVATION.size <= end:
        address, size = _RESERVATION.unpack_from(blob, at)
        if not address and not size:
            return
        yield address, size
        at += _RESERVATION.size
    raise TreeError("damaged: the list of reserved memory does not end in it")


class _Structure:
    """The structure block, read from its start to its end: tokens, each of which begins at a multiple of 4."""

    def __init__(self, blob: bytes, start: int, end: int, strings: bytes) -> None:
        self._blob = blob
        self._start = self._at = start
        self._end = end
        self._strings = strings
        self._root: Branch | None = None
        self._count = 0
        self._above: list[Branch] = []  # the nodes that have not ended

    def read(self) -> Branch:
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
                    at = self._at - 4 - self._start
                    raise TreeError(f"damaged: token {token:#x} at {at:#x} of its structure block")
        if self._root is None or self._above:
            raise TreeError("damaged: its structure block ends before its nodes do")
        return self._root

    def _begin(self) -> None:
        name = _text(self._blob, self._at, self._end, self._start)
        self._at += len(name) + 4 & ~3
        node = Branch(name.decode("ascii", "backslashreplace"))
        self._count += 1
        if self._above:
            self._above[-1].children.append(node)
        elif self._root is not None:
            raise TreeError("damaged: it has more than one root node")
        else:
            self._root = node
        self._above.append(node)
        if len(self._above) > _DEEPEST:
            raise TreeError(f"damaged: more than {_DEEPEST} nodes in each other")
        if self._count > _MOST_NODES:
            raise TreeError(f"more than {_MOST_NODES:,} nodes")

    def _property(self, node: Branch) -> None:
        size, at = self._word(), self._word()
        name = _text(self._strings, at, len(self._strings), 0).decode("ascii", "backslashreplace")
        if self._at + size > self._end:
            raise TreeError(f"damaged: property {name} of {node.name or '/'} goes on behind its structure block")
        node.values[name] = Value(self._at, size)
        self._at += size + 3 & ~3

    def _word(self) -> int:
        at = self._at
        if at + 4 > self._end:
            raise TreeError("damaged: its structure block ends before its nodes do")
        self._at += 4
        return int.from_bytes(self._blob[at : at + 4], "big")


def _text(block: bytes, at: int, limit: int, start: int) -> bytes:
    end = block.find(b"\0", at, limit)
    if not 0 <= at < limit or end < 0:
        raise TreeError(f"damaged: a name at {at - start:#x} does not end in its block")
    return block[at:end]
