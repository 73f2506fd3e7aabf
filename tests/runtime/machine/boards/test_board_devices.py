"""A board's record, the devices that the board attaches, and what it tells the guest of them are the same devices.

Without an engine: a board is started, and what it attached is looked at.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinst.runtime.machine import devices
from kinst.runtime.machine.devices.fdt import Node
from kinst.runtime.machine.devices.fdt_reader import unflatten
from kinst.targets.machines.kinds import device_file
from kinst.targets.machines.machine import Space
from kinst.targets.machines.registry import MODELLED
from tests.fuzz.traffic import Traffic

FDT = b"\xd0\x0d\xfe\xed"
each_board = pytest.mark.parametrize("name", MODELLED)


@each_board
def test_each_device_of_the_record_is_attached_in_its_place(name: str) -> None:
    traffic = Traffic(name)
    spaces = {id(traffic.bus): Space.MEMORY, id(traffic.ports): Space.PORTS}
    attached = {(spaces[id(bus)], address): device.size for bus, address, device in traffic.places}
    for kind, facts in traffic.facts.devices.items():
        size = attached.get((facts.space, facts.address))
        assert size is not None, f"{kind}: nothing is attached at {facts.address:#x}"
        assert size <= facts.size, f"{kind}: it answers {size:#x} bytes, and the record has {facts.size:#x}"


@each_board
def test_what_acts_by_itself_is_asked_for_its_deadline(name: str) -> None:
    """A device that is attached, and not also as a `Timed` one, never acts; nor would anybody see that it does not."""
    traffic = Traffic(name)
    by_itself = [device for *_, device in traffic.places if hasattr(device, "deadline") and hasattr(device, "advance")]
    timed = list(map(id, traffic.timed))
    assert [type(device).__name__ for device in by_itself if id(device) not in timed] == []


@each_board
def test_models_are_files(name: str) -> None:
    files = [path for folder in devices.__path__ for path in Path(folder).rglob("*.py")]
    known = {path.stem for path in files} | {f"{path.parent.name}_{path.stem}" for path in files}
    assert {device_file(facts.model) for facts in Traffic(name).facts.devices.values()} <= known


@pytest.mark.parametrize("name", [name for name in MODELLED if name != "pc-amd64"])
def test_each_device_is_in_the_device_tree(name: str) -> None:
    """Otherwise no kernel looks for it. A PC has ACPI instead, and devices that everybody expects."""
    traffic = Traffic(name)
    memory = traffic.memory.read(traffic.facts.ram_base, traffic.ram_size)
    registers = b"".join(_registers(unflatten(memory[memory.index(FDT) :]).root))
    for kind, facts in traffic.facts.devices.items():
        assert struct.pack(">Q", facts.address) in registers, f"{kind}, at {facts.address:#x}"


def _registers(node: Node) -> Iterator[bytes]:
    value = node.properties.get("reg", b"")
    assert isinstance(value, bytes)
    yield value
    for child in node.children:
        yield from _registers(child)
