"""ACPI's tables, read back field by field as the specification has them."""

import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from kinst.runtime.machine.boards.acpi import acpi_tables
from kinst.runtime.machine.boards.aml import integer, scope
from kinst.runtime.machine.devices.pc.port_io import AcpiEvents
from kinst.targets.machines.registry import machine_facts

AT = 0xF_0000
NO_BUS: Mapping[int, int] = {}


def tables(cpus: int = 2, interrupts: Mapping[int, int] = NO_BUS) -> dict[int, bytes]:
    devices = machine_facts("pc-amd64").devices
    return {piece.address: piece.data for piece in acpi_tables(AT, cpus, devices, interrupts)}


def table(signature: bytes, cpus: int = 2, interrupts: Mapping[int, int] = NO_BUS) -> bytes:
    return next(content for content in tables(cpus, interrupts).values() if content[:4] == signature)


@pytest.mark.parametrize("interrupts", [NO_BUS, dict.fromkeys(range(1, 32), 10)])
def test_the_root_leads_to_every_table(interrupts: Mapping[int, int]) -> None:
    found = tables(8, interrupts)
    root = found[AT]
    assert (root[:8], root[15], sum(root[:20]) & 0xFF, sum(root) & 0xFF, len(root)) == (b"RSD PTR ", 2, 0, 0, 36)
    (listed,) = struct.unpack_from("<Q", root, 24)
    entries = struct.unpack_from("<2Q", found[listed], 36)
    assert [found[at][:4] for at in (listed, *entries)] == [b"XSDT", b"FACP", b"APIC"]
    facs, dsdt = struct.unpack_from("<2Q", found[entries[0]], 132)
    assert (found[facs][:4], found[dsdt][:4], facs % 64) == (b"FACS", b"DSDT", 0)
    for at, content in found.items():
        if at not in (AT, facs):
            assert len(content) == int.from_bytes(content[4:8], "little")
            assert sum(content) & 0xFF == 0
    ends = sorted((at, at + len(content)) for at, content in found.items())
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))


def test_the_power_registers_are_the_boards() -> None:
    devices = machine_facts("pc-amd64").devices
    fixed = table(b"FACP")
    assert struct.unpack_from("<I4xI", fixed, 56) == (devices["power-events"].address, devices["power"].address)
    assert struct.unpack_from("<B3xQ", fixed, 148) == (1, devices["power-events"].address)
    assert struct.unpack_from("<B3xQ", fixed, 172) == (1, devices["power"].address)
    assert struct.unpack_from("<B3xQB", fixed, 116) == (1, devices["reset"].address, 6)


@pytest.mark.parametrize("cpus", [1, 8])
def test_every_cpu_has_an_entry(cpus: int) -> None:
    entries = entries_of(table(b"APIC", cpus))
    assert [entry for entry in entries if entry[0] == 0] == [
        bytes([0, 8, number, number, 1, 0, 0, 0]) for number in range(cpus)
    ]


def entries_of(madt: bytes) -> list[bytes]:
    at, found = 44, []
    while at < len(madt):
        found.append(madt[at : at + madt[at + 1]])
        at += madt[at + 1]
    return found


def test_interrupts_of_the_bus_are_levels_and_the_timer_is_at_the_third_pin() -> None:
    _, controller, *overrides, nmi = entries_of(table(b"APIC", 1, {1: 10, 2: 11, 3: 10}))
    assert struct.unpack("<BBBxII", controller) == (1, 12, 0, machine_facts("pc-amd64").devices["ioapic"].address, 0)
    assert [struct.unpack("<BBBBIH", entry)[2:] for entry in overrides] == [
        (0, 0, 2, 0),
        (0, 9, 9, 0xD),
        (0, 10, 10, 0xD),
        (0, 11, 11, 0xD),
    ]
    assert nmi == bytes([4, 6, 0xFF, 0, 0, 1])


def test_the_bus_tells_its_windows_and_routes() -> None:
    code = table(b"DSDT", 1, {1: 10, 2: 1, 31: 5})[36:]
    devices = machine_facts("pc-amd64").devices
    (resources,) = re.findall(rb"_CRS\x11..\x0a.(.*)\x79\0\x08_PRT", code, re.DOTALL)
    kinds: dict[int, list[bytes]] = {}
    while resources:
        kinds.setdefault(resources[0], []).append(resources)
        resources = resources[3 + int.from_bytes(resources[1:3], "little") if resources[0] & 0x80 else 8 :]
    (memory,), (ports,) = kinds[0x87], kinds[0x47]
    window = devices["pci-memory"]
    assert struct.unpack_from("<IIIII", memory, 6)[1:] == (
        *(window.address, window.address + window.size - 1),
        *(0, window.size),
    )
    assert struct.unpack_from("<BHHBB", ports, 1) == (1, 0xCF8, 0xCF8, 1, 8)
    spaces = [(one[3], *struct.unpack_from("<HHxxH", one, 8)) for one in kinds[0x88]]
    assert spaces == [(2, 0, 0, 1), (1, 0, 0xCF7, 0xCF8), (1, 0xD00, 0xFFFF, 0xF300)]
    routes = code[code.index(b"_PRT") + 4 :]
    assert routes == bytes.fromhex(
        "12 25 03  120b04 0cffff0100 00 00 0a0a  120a04 0cffff0200 00 00 01"
    ) + bytes.fromhex("120b04 0cffff1f00 00 00 0a05")


@pytest.mark.parametrize(
    ("size", "length"), [(0, "01"), (62, "3f"), (63, "41 04"), (4093, "4f ff"), (4094, "81 00 01")]
)
def test_lengths_count_themselves(size: int, length: str) -> None:
    assert scope(b"", b"x" * size)[1 : -size or None] == bytes.fromhex(length)


@pytest.mark.parametrize(
    ("value", "code"), [(0, "00"), (1, "01"), (2, "0a02"), (0x100, "0b0001"), (0x1_FFFF, "0cffff0100")]
)
def test_integers_are_as_short_as_they_can_be(value: int, code: str) -> None:
    assert integer(value) == bytes.fromhex(code)


def test_a_disassembler_reads_the_sleeping_state(tmp_path: Path) -> None:
    if shutil.which("iasl") is None:
        pytest.skip("needs iasl")
    (tmp_path / "dsdt.aml").write_bytes(table(b"DSDT", 2, {1: 10}))
    subprocess.run(["iasl", "-d", "dsdt.aml"], cwd=tmp_path, check=True, capture_output=True)
    text = (tmp_path / "dsdt.dsl").read_text()
    assert "Name (_S5, Package (0x04)" in text
    assert "Device (PCI0)" in text


def test_events_are_enabled_and_never_come() -> None:
    events = AcpiEvents()
    for offset, value in enumerate((0xFF, 0xFF, 0x20, 0x03)):
        events.write(offset, 1, value)
    assert [events.read(offset, 1) for offset in range(4)] == [0, 0, 0x20, 0x03]
