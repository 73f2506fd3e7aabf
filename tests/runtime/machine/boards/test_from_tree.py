"""`--board-from`: a device tree -> a board file, which is read and runs what the tree's board runs."""

from pathlib import Path

import pytest

from kinst.runtime.machine.boards.from_tree import board_from
from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.targets.errors import MachineError
from kinst.targets.machines.board_file import read_board
from kinst.targets.machines.machine import MachineFacts
from kinst.targets.machines.registry import BOARDS, machine_facts
from tests.commands.in_process import kinst_run
from tests.fuzz.traffic import Traffic
from tests.samples.machines import MACHINES, expected_console

FDT = b"\xd0\x0d\xfe\xed"


def tree_of(machine: str) -> bytes:
    """The device tree that a modelled board gives its guest."""
    traffic = Traffic(machine)
    memory = traffic.memory.read(traffic.facts.ram_base, traffic.ram_size)
    return memory[memory.index(FDT) :]


def board_of(folder: Path, blob: bytes) -> MachineFacts:
    path = folder / "made.toml"
    path.write_text(board_from(blob, "tree.dtb"))
    return read_board(path, BOARDS)


@pytest.mark.parametrize("machine", ["virt-arm64", "virt-gicv3-arm64", "virt-riscv64"])
def test_devices_are_those_of_the_tree(machine: str, tmp_path: Path) -> None:
    made, modelled = board_of(tmp_path, tree_of(machine)), machine_facts(machine)
    for name in ("console", "rtc"):
        expected = modelled.devices[name]
        found = next(one for one in made.devices.values() if one.address == expected.address)
        assert (found.interrupt, found.size) == (expected.interrupt, expected.size)
        assert found.model == expected.model
    assert (made.ram_base, made.ram_size) == (modelled.ram_base, 8 << 20)
    assert made.timebase in (modelled.timebase, 24_000_000)
    assert made.midr == (0x411F_D070 if machine.endswith("arm64") else None)
    controllers = {(one.model, one.address) for one in modelled.devices.values() if one.model.startswith("gicv")}
    assert controllers - {("gicv2m", 0x0802_0000)} <= {(one.model, one.address) for one in made.devices.values()}
    assert any(one.address == modelled.devices["fw-cfg"].address for one in made.ranges)


@pytest.mark.parametrize("machine", ["arm64", "riscv64"])
def test_the_sample_kernel_runs_on_what_was_made(machine: str, tmp_path: Path) -> None:
    tree, file = tmp_path / "tree.dtb", tmp_path / "made.toml"
    tree.write_bytes(tree_of(f"virt-{machine}"))
    made = kinst_run("--board-from", tree)
    assert made.returncode == 0
    text = made.stdout.replace('level = "S"', 'level = "M"').replace("timebase = 24_000_000", "timebase = 62_500_000")
    file.write_text(text.replace('unnamed = "last"', 'unnamed = "fault"'))
    result = kinst_run("-q", "--clock", "icount", "--board", file, MACHINES[machine].image)
    assert result.stdout == expected_console(1)


def soc(*nodes: Node, ranges: bytes | None = b"", cells: int = 1) -> Node:
    root = Node("", {"#address-cells": 2, "#size-cells": 2, "model": 'A "board"\n'})
    root.add("cpus", {"#address-cells": 1, "#size-cells": 0}).add("cpu@0", {"device_type": "cpu", "reg": 0})
    bus = root.add("soc", {"#address-cells": cells, "#size-cells": 1})
    if ranges is not None:
        bus.properties["ranges"] = ranges
    bus.children += nodes
    return root


def test_addresses_are_translated(tmp_path: Path) -> None:
    """A bus at 0x7e000000 that the CPU sees at 0xfe000000, and one within that is not reached."""
    uart = Node("serial@7e201000", {"compatible": "arm,pl011", "reg": (0x7E20_1000, 0x200)})
    away = Node("away@0", {"reg": (0, 0x1000)})
    ranges = b"".join(value.to_bytes(4, "big") for value in (0x7E00_0000, 0, 0xFE00_0000, 0x0180_0000))
    facts = board_of(tmp_path, flatten(soc(uart, away, ranges=ranges)))
    assert (facts.devices["console"].address, facts.devices["console"].size) == (0xFE20_1000, 0x200)
    assert facts.ranges == ()


def test_all_uarts_are_devices(tmp_path: Path) -> None:
    """Two of them are in a page that the first one's device answers as a whole; the console is not the first."""
    uarts = [
        Node(f"serial@{at:x}", {"compatible": kind, "reg": at.to_bytes(4, "big") + size.to_bytes(4, "big")})
        for kind, at, size in (
            ("arm,pl011", 0x1000, 0x200),
            ("arm,pl011", 0x1200, 0x200),
            ("fsl,imx6q-uart", 0x3089_0000, 0x1_0000),
            ("qcom,geni-debug-uart", 0x99_4000, 0x4000),
        )
    ]
    root = soc(*uarts)
    root.add("chosen", {"stdout-path": "/soc/serial@30890000:115200"})
    made = board_of(tmp_path, flatten(root))
    assert [(name, one.model, one.address) for name, one in made.devices.items()] == [
        ("console", "imx-uart", 0x3089_0000),
        ("serial", "pl011", 0x1000),
        ("serial-994000", "geni-uart", 0x99_4000),
    ]


def test_ram_that_the_tree_does_not_name_is_where_no_device_is(tmp_path: Path) -> None:
    facts = board_of(tmp_path, flatten(soc(Node("a@1c28000", {"reg": (0x1C2_8000, 0x400)}))))
    assert (facts.ram_base, facts.ram_size) == (0x4000_0000, 512 << 20)
    assert [(one.name, one.address, one.size) for one in facts.ranges] == [("a", 0x1C2_8000, 0x400)]


def test_memory_of_the_chip_is_memory(tmp_path: Path) -> None:
    sram = Node("sram@18000", {"compatible": "mmio-sram", "reg": (0x1_8000, 0x2_8000)})
    assert board_of(tmp_path, flatten(soc(sram))).other_memory == ((0x1_8000, 0x2_8000),)


def test_names_are_unique(tmp_path: Path) -> None:
    nodes = (Node(f"unnamed@{at:x}", {"reg": (at, 0x10, at + 0x10, 0x10)}) for at in (0x100, 0x200))
    facts = board_of(tmp_path, flatten(soc(*nodes)))
    assert [one.name for one in facts.ranges] == ["unnamed-100", "unnamed-1", "unnamed-200", "unnamed-1-210"]


@pytest.mark.parametrize(
    ("blob", "why"), [(b"", "no flattened device tree"), (flatten(Node("")), "it has no CPUs: it describes no board")]
)
def test_trees_that_are_refused(blob: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=why):
        board_from(blob, "x")
    path = tmp_path / "x.dtb"
    path.write_bytes(blob)
    result = kinst_run("--board-from", path)
    assert result.returncode == 1
    assert result.stderr.startswith(f"kinst-run: --board-from {path}: {why}")
