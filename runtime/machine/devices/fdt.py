"""A tree of nodes and properties -> a flattened device tree blob (Devicetree Specification 0.4, chapter 5)."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

Value = int | str | bytes | tuple[int, ...] | tuple[str, ...] | None

_MAGIC: Final = 0xD00DFEED
_BEGIN_NODE, _END_NODE, _PROPERTY, _END = 1, 2, 3, 9
_HEADER: Final = struct.Struct(">10I")
_VERSION, _COMPATIBLE_VERSION = 17, 16


@dataclass(slots=True)
class Node:
    """One node. The value of a property is an integer or several (32-bit cells), text (NUL-terminated) or None
    (empty)."""

    name: str
    properties: dict[str, Value] = field(default_factory=dict)
    children: list["Node"] = field(default_factory=list)

    def add(self, name: str, properties: Mapping[str, Value]) -> "Node":
        """Add a child and return it."""
        child = Node(name, dict(properties))
        self.children.append(child)
        return child

    def keep(self, is_wanted: Callable[["Node"], bool]) -> None:
        """Drop the children that are not wanted."""
        self.children = [child for child in self.children if is_wanted(child)]


def cells64(*values: int) -> tuple[int, ...]:
    """64-bit numbers as pairs of 32-bit cells, the high one first."""
    return tuple(cell for value in values for cell in (value >> 32, value & 0xFFFF_FFFF))


def flatten(root: Node, boot_cpu: int = 0, size: int = 0, reserved: Sequence[tuple[int, int]] = ()) -> bytes:
    """The blob of the tree under `root`, whose name is empty. It has at least `size` bytes, since guests add to it.
    `reserved`: physical address and size of memory that is not to be used."""
    strings = _Strings()
    structure = _flatten_node(root, strings) + struct.pack(">I", _END)
    reservations = b"".join(struct.pack(">2Q", *one) for one in (*reserved, (0, 0)))
    names = bytes(strings.content)
    at_structure = _HEADER.size + len(reservations)
    at_strings = at_structure + len(structure)
    used = at_strings + len(names)
    total = max(used, size)
    header = _HEADER.pack(
        _MAGIC,
        total,
        at_structure,
        at_strings,
        _HEADER.size,
        _VERSION,
        _COMPATIBLE_VERSION,
        boot_cpu,
        len(names),
        len(structure),
    )
    return header + reservations + structure + names + bytes(total - used)


class _Strings:
    """The block of property names, in which each occurs once."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._offsets: dict[str, int] = {}

    def offset(self, name: str) -> int:
        if name not in self._offsets:
            self._offsets[name] = len(self.content)
            self.content += name.encode() + b"\0"
        return self._offsets[name]


def _flatten_node(node: Node, strings: _Strings) -> bytes:
    parts = [struct.pack(">I", _BEGIN_NODE), _padded(node.name.encode() + b"\0")]
    for name, value in node.properties.items():
        content = _encode(value)
        parts += [struct.pack(">3I", _PROPERTY, len(content), strings.offset(name)), _padded(content)]
    parts += [_flatten_node(child, strings) for child in node.children]
    parts.append(struct.pack(">I", _END_NODE))
    return b"".join(parts)


def _encode(value: Value) -> bytes:
    match value:
        case None:
            return b""
        case bytes():
            return value
        case str():
            return value.encode() + b"\0"
        case int():
            return struct.pack(">I", value)
        case _:
            return b"".join(_encode(item) for item in value)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)
