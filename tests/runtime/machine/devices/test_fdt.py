"""Device trees: what we flatten is read back by a reader of its own, made from the specification."""

import struct

from kinst.runtime.machine.devices.fdt import Node, cells64, flatten


def unflatten(blob: bytes) -> dict[str, dict[str, bytes]]:
    """Path of every node -> its properties."""
    magic, total, structure, strings, _, version, compatible, _boot_cpu, size_strings, size_structure = struct.unpack(
        ">10I", blob[:40]
    )
    assert (magic, total, version, compatible) == (0xD00DFEED, len(blob), 17, 16)
    assert structure % 4 == 0
    assert strings + size_strings <= total
    assert structure + size_structure <= strings
    nodes: dict[str, dict[str, bytes]] = {}
    path: list[str] = []
    at = structure
    while True:
        token = struct.unpack_from(">I", blob, at)[0]
        at += 4
        if token == 1:
            end = blob.index(b"\0", at)
            path.append(blob[at:end].decode())
            nodes["/".join(path) or "/"] = {}
            at = (end + 4) & ~3
        elif token == 2:
            path.pop()
        elif token == 3:
            length, name = struct.unpack_from(">2I", blob, at)
            end = blob.index(b"\0", strings + name)
            nodes["/".join(path) or "/"][blob[strings + name : end].decode()] = blob[at + 8 : at + 8 + length]
            at = (at + 8 + length + 3) & ~3
        else:
            assert token == 9
            assert at == structure + size_structure
            return nodes


def test_every_kind_of_value_comes_back() -> None:
    root = Node("", {"#address-cells": 2, "compatible": ("a,b", "c"), "empty": None, "raw": b"\1\2\3"})
    child = root.add("memory@80000000", {"reg": cells64(0x8000_0000, 1 << 32), "device_type": "memory"})
    child.add("deeper", {"#address-cells": 1})
    nodes = unflatten(flatten(root))
    assert nodes["/"] == {
        "#address-cells": b"\0\0\0\2",
        "compatible": b"a,b\0c\0",
        "empty": b"",
        "raw": b"\1\2\3",
    }
    assert nodes["/memory@80000000"]["reg"] == struct.pack(">2Q", 0x8000_0000, 1 << 32)
    assert nodes["/memory@80000000/deeper"] == {"#address-cells": b"\0\0\0\1"}


def test_a_property_name_is_stored_once() -> None:
    root = Node("", {"compatible": "x"})
    for number in range(9):
        root.add(f"n{number}", {"compatible": "y"})
    assert flatten(root).count(b"compatible\0") == 1
