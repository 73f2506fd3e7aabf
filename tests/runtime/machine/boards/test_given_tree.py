"""The device tree of --dtb: what the guest gets is what QEMU makes of it, and what the machine has."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from kinst.runtime.machine.boards.given_tree import adapted
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import Configuration
from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.runtime.machine.devices.fdt_reader import unflatten
from kinst.runtime.machine.system import System
from kinst.targets.errors import MachineError
from kinst.targets.machines.registry import machine_facts

QEMU = ("qemu-system-aarch64", "-cpu", "cortex-a57", "-m", "256", "-nographic", "-machine")
Properties = dict[str, dict[str, bytes]]


def system(cpus: int = 1) -> System:
    facts = machine_facts("virt-arm64")
    return System(facts, board_of(facts.name), Configuration(cpus=cpus, memory=256 << 20, command_line="hello there"))


def properties(node: Node, above: str = "") -> Properties:
    path = f"{above}/{node.name}"
    found: Properties = {path: {name: value for name, value in node.properties.items() if isinstance(value, bytes)}}
    for child in node.children:
        found |= properties(child, path)
    return found


def test_it_is_what_qemu_gives_its_guest(tmp_path: Path) -> None:
    if shutil.which(QEMU[0]) is None:
        pytest.skip("needs QEMU")
    given, theirs, kernel = (tmp_path / name for name in ("given.dtb", "theirs.dtb", "kernel"))
    kernel.write_bytes(bytes(4096))
    dump = "virt,gic-version=2,dumpdtb="
    subprocess.run([*QEMU[:4], "64", *QEMU[5:], f"{dump}{given}"], check=True, capture_output=True)
    words = ("-dtb", str(given), "-kernel", str(kernel), "-append", "hello there")
    subprocess.run([*QEMU, f"{dump}{theirs}", *words], check=True, capture_output=True)

    ours = properties(unflatten(adapted(system(), given.read_bytes(), None)).root)

    assert ours == properties(unflatten(theirs.read_bytes()).root)
    assert ours["//chosen"]["bootargs"] == b"hello there\0"
    assert ours["//memory@40000000"]["reg"] == struct.pack(">2Q", 0x4000_0000, 256 << 20)


def two_cpus() -> Node:
    root = Node("", {"#address-cells": 2, "#size-cells": 2})
    root.add("memory@0", {"device_type": "memory", "reg": bytes(16)})
    root.add("memory@1000", {"device_type": "memory", "reg": bytes(16)})
    cpus = root.add("cpus", {"#address-cells": 1})
    for number in range(2):
        cpus.add(f"cpu@{number}", {"device_type": "cpu", "reg": number})
    cpus.add("cpu-map", {})
    return root


@pytest.mark.parametrize(("cpus", "left"), [(1, {"cpu@0", "cpu-map"}), (2, {"cpu@0", "cpu@1", "cpu-map"})])
def test_cpus_and_memory_are_the_machines(cpus: int, left: set[str]) -> None:
    blob = adapted(system(cpus), flatten(two_cpus()), range(0x4800_0000, 0x4800_1234))
    found = properties(unflatten(blob).root)
    assert {path.rpartition("/")[2] for path in found if path.startswith("//cpus/")} == left
    assert [path for path in found if path.startswith("//memory")] == ["//memory@40000000"]
    assert int.from_bytes(found["//chosen"]["linux,initrd-end"], "big") == 0x4800_1234


def test_a_tree_that_does_not_fit_is_refused() -> None:
    root = two_cpus()
    with pytest.raises(MachineError, match=r"--dtb: it has .* bytes, and the guest can be given 0x10"):
        adapted(system(), flatten(root), None, size=16)
    root.properties["#address-cells"] = 3
    with pytest.raises(MachineError, match="#address-cells of / is 3"):
        adapted(system(), flatten(root), None)
    with pytest.raises(MachineError, match="--dtb: no flattened device tree"):
        adapted(system(), b"", None)
