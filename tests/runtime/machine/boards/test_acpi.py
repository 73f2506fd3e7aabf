"""ACPI's tables, read back field by field as the specification has them."""

import shutil
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from kinst.runtime.machine.boards.acpi import acpi_tables
from kinst.runtime.machine.devices.port_io import AcpiEvents
from kinst.targets.machines.registry import machine_facts

AT = 0xF_0000


def tables(cpus: int = 2) -> dict[int, bytes]:
    devices = machine_facts("pc-amd64").devices
    registers = (devices[name] for name in ("power-events", "power", "reset"))
    return {piece.address: piece.data for piece in acpi_tables(AT, cpus, *registers)}


def test_the_root_leads_to_every_table() -> None:
    found = tables()
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
    fixed = next(content for content in tables().values() if content[:4] == b"FACP")
    assert struct.unpack_from("<I4xI", fixed, 56) == (devices["power-events"].address, devices["power"].address)
    assert struct.unpack_from("<B3xQ", fixed, 148) == (1, devices["power-events"].address)
    assert struct.unpack_from("<B3xQ", fixed, 172) == (1, devices["power"].address)
    assert struct.unpack_from("<B3xQB", fixed, 116) == (1, devices["reset"].address, 6)


@pytest.mark.parametrize("cpus", [1, 8])
def test_every_cpu_has_an_entry(cpus: int) -> None:
    madt = next(content for content in tables(cpus).values() if content[:4] == b"APIC")
    entries = [madt[at : at + 8] for at in range(44, len(madt), 8)]
    assert entries == [bytes([0, 8, number, number, 1, 0, 0, 0]) for number in range(cpus)]


def test_a_disassembler_reads_the_sleeping_state(tmp_path: Path) -> None:
    if shutil.which("iasl") is None:
        pytest.skip("needs iasl")
    (tmp_path / "dsdt.aml").write_bytes(next(content for content in tables().values() if content[:4] == b"DSDT"))
    subprocess.run(["iasl", "-d", "dsdt.aml"], cwd=tmp_path, check=True, capture_output=True)
    assert "Name (_S5, Package (0x04)" in (tmp_path / "dsdt.dsl").read_text()


def test_events_are_enabled_and_never_come() -> None:
    events = AcpiEvents()
    for offset, value in enumerate((0xFF, 0xFF, 0x20, 0x03)):
        events.write(offset, 1, value)
    assert [events.read(offset, 1) for offset in range(4)] == [0, 0, 0x20, 0x03]
