"""Device trees that come from a file: what was flattened is read back; what is damaged is one error."""

import random
import struct

import pytest

from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.runtime.machine.devices.fdt_reader import unflatten
from kinst.targets.errors import MachineError

HEADER = ("magic", "total", "structure", "strings", "reserved", "version", "compatible", "boot", "names", "size")


def tree() -> Node:
    root = Node("", {"#address-cells": 2, "compatible": ("a,b", "c"), "empty": None})
    child = root.add("cpus", {"x": 1})
    child.add("cpu@0", {"reg": 0, "raw": b"\1\2\3"})
    child.add("cpu@1", {"reg": 1})
    root.add("chosen", {})
    return root


def with_field(blob: bytes, name: str, value: int) -> bytes:
    at = 4 * HEADER.index(name)
    return blob[:at] + struct.pack(">I", value) + blob[at + 4 :]


def test_what_is_flattened_is_read_back() -> None:
    blob = flatten(tree(), reserved=((0x8000_0000, 0x1000), (5, 6)))
    found = unflatten(blob)
    assert found.reservations == ((0x8000_0000, 0x1000), (5, 6))
    assert found.root.properties == {"#address-cells": b"\0\0\0\2", "compatible": b"a,b\0c\0", "empty": b""}
    assert [child.name for child in found.root.children] == ["cpus", "chosen"]
    assert found.root.children[0].children[0].properties == {"reg": bytes(4), "raw": b"\1\2\3"}
    assert flatten(found.root, reserved=found.reservations) == blob


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("magic", 0, "does not begin with d0 0d fe ed"),
        ("total", 0xFFFF_FFFF, "says that it has 0xffffffff bytes"),
        ("version", 15, "version 15"),
        ("compatible", 18, "version"),
        ("structure", 0xFFFF_FFFC, "structure block"),
        ("strings", 0, "strings block"),
        ("names", 0, "does not end in its block"),
        ("size", 8, "ends before its nodes do"),
        ("reserved", 0xFFFF_FFF0, "reserved memory does not end"),
    ],
)
def test_a_header_that_lies_is_refused(field: str, value: int, why: str) -> None:
    with pytest.raises(MachineError, match=why):
        unflatten(with_field(flatten(tree()), field, value))


def test_a_tree_that_is_too_deep_is_refused() -> None:
    node = root = Node("")
    for _ in range(80):
        node = node.add("n", {})
    with pytest.raises(MachineError, match="64 nodes in each other"):
        unflatten(flatten(root))


def test_damage_anywhere_is_an_error_or_another_tree() -> None:
    blob, rng = flatten(tree()), random.Random(12)
    for length in range(len(blob)):
        with pytest.raises(MachineError):
            unflatten(blob[:length])
    for _ in range(3000):
        damaged = bytearray(blob)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(blob))] = rng.randrange(256)
        try:
            unflatten(bytes(damaged))
        except MachineError as error:
            assert "\n" not in str(error)
