"""A device tree as nested nodes -> the flattened blob that kernels are started with (Devicetree Specification 0.4, ch. 5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Value = str | bytes | int | tuple[int, ...] | tuple[str, ...] | None

_MAGIC: Final = 0xD00DFEED
_VERSION, _COMPATIBLE_VERSION = 17, 16
_HEADER_SIZE: Final = 40
_BEGIN_NODE, _END_NODE, _PROPERTY, _END = 1, 2, 3, 9


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its properties and its children by name. A property is text, several texts, one cell (32 bits), several
    cells, bytes as they are, or None for one that is only there."""

    properties: Mapping[str, Value] = field(default_factory=dict)
    children: Mapping[str, "Node"] = field(default_factory=dict)


def cells64(*values: int) -> tuple[int, ...]:
    """Each value as two cells, upper half first: `reg` and `ranges` under #address-cells and #size-cells of 2."""
    return tuple(half for value in values for half in (value >> 32, value & 0xFFFFFFFF))


def flatten(root: Node, boot_cpu: int = 0) -> bytes:
    """The blob: header, empty memory reservation map, structure, strings."""
    strings = _Strings()
    structure = _flatten_node("", root, strings) + _END.to_bytes(4, "big")
    reservations = _HEADER_SIZE
    structure_at = reservations + 16
    strings_at = structure_at + len(structure)
    text = strings.text
    header = (
        _MAGIC,
        strings_at + len(text),
        structure_at,
        strings_at,
        reservations,
        _VERSION,
        _COMPATIBLE_VERSION,
        boot_cpu,
        len(text),
        len(structure),
    )
    return b"".join(word.to_bytes(4, "big") for word in header) + bytes(16) + structure + text


class _Strings:
    """The block of property names, each once."""

    def __init__(self) -> None:
        self._offsets: dict[str, int] = {}
        self.text = b""

    def offset(self, name: str) -> int:
        """Where `name` is, added if it was not there."""
        if name not in self._offsets:
            self._offsets[name] = len(self.text)
            self.text += name.encode() + b"\0"
        return self._offsets[name]


def _flatten_node(name: str, node: Node, strings: _Strings) -> bytes:
    parts = [_BEGIN_NODE.to_bytes(4, "big"), _padded(name.encode() + b"\0")]
    for property_name, value in node.properties.items():
        content = _content(value)
        words = (_PROPERTY, len(content), strings.offset(property_name))
        parts += [word.to_bytes(4, "big") for word in words]
        parts.append(_padded(content))
    parts += [_flatten_node(child, below, strings) for child, below in node.children.items()]
    return b"".join(parts) + _END_NODE.to_bytes(4, "big")


def _content(value: Value) -> bytes:
    match value:
        case None:
            return b""
        case bytes():
            return value
        case str():
            return value.encode() + b"\0"
        case int():
            return value.to_bytes(4, "big")
        case tuple():
            return b"".join(_content(part) for part in value)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
