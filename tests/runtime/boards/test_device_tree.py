"""What we flatten, read back by dtc's rules: the structure block is walked here word by word."""

from kinst.runtime.boards.device_tree import Node, cells64, flatten

TREE = Node(
    {"#address-cells": 2, "compatible": ("a,b", "c"), "empty": None, "mac": b"\x01\x02\x03"},
    {
        "memory@40000000": Node({"device_type": "memory", "reg": cells64(0x4000_0000, 0x1_0000_0000)}),
        "soc": Node({"ranges": None, "reg": (1, 2)}, {"uart@0": Node({"reg": 7})}),
    },
)

HEADER = (
    "magic",
    "total",
    "structure",
    "strings",
    "reservations",
    "version",
    "compatible",
    "cpu",
    "strings_size",
    "structure_size",
)


def read(blob: bytes) -> tuple[dict[str, dict[str, bytes]], dict[str, int]]:
    """Path -> properties of a blob, and its header."""
    header = {name: int.from_bytes(blob[4 * n : 4 * n + 4], "big") for n, name in enumerate(HEADER)}
    nodes: dict[str, dict[str, bytes]] = {}
    path: list[str] = []
    at = header["structure"]
    while True:
        token = int.from_bytes(blob[at : at + 4], "big")
        at += 4
        if token == 1:
            end = blob.index(0, at)
            path.append(blob[at:end].decode())
            nodes["/".join(path) or "/"] = {}
            at = end + 4 & ~3
        elif token == 2:
            path.pop()
        elif token == 3:
            length, name = int.from_bytes(blob[at : at + 4], "big"), int.from_bytes(blob[at + 4 : at + 8], "big")
            start = header["strings"] + name
            key = blob[start : blob.index(0, start)].decode()
            nodes["/".join(path) or "/"][key] = blob[at + 8 : at + 8 + length]
            at = at + 8 + length + 3 & ~3
        else:
            assert token == 9
            assert at == header["structure"] + header["structure_size"]
            return nodes, header


def test_what_is_flattened_can_be_read_back() -> None:
    blob = flatten(TREE, boot_cpu=3)
    nodes, header = read(blob)
    assert (header["magic"], header["version"], header["compatible"], header["cpu"]) == (0xD00DFEED, 17, 16, 3)
    assert header["total"] == len(blob) == header["strings"] + header["strings_size"]
    assert blob[header["reservations"] : header["structure"]] == bytes(16)
    assert nodes == {
        "/": {"#address-cells": b"\0\0\0\2", "compatible": b"a,b\0c\0", "empty": b"", "mac": b"\1\2\3"},
        "/memory@40000000": {"device_type": b"memory\0", "reg": bytes.fromhex("00000000400000000000000100000000")},
        "/soc": {"ranges": b"", "reg": bytes.fromhex("0000000100000002")},
        "/soc/uart@0": {"reg": b"\0\0\0\7"},
    }


def test_a_property_name_is_stored_once() -> None:
    assert flatten(TREE).count(b"reg\0") == 1
