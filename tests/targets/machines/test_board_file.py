"""Board files: what is read, and what is refused, with its place."""

from pathlib import Path

import pytest

from kinst.targets.errors import UsageError
from kinst.targets.machines.board_file import read_board
from kinst.targets.machines.machine import Alias, MachineFacts, Space
from kinst.targets.machines.registers import Reads, Rule
from kinst.targets.machines.registry import BOARDS, MACHINES, MODELLED, machine_facts

SMALL = """\
cpu = "arm64"

[memory.ram]
address = 0x4000_0000
size = "16m"
"""


def read(folder: Path, text: str) -> MachineFacts:
    path = folder / "board.toml"
    path.write_text(text)
    return read_board(path, BOARDS)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(folder, text)
    return str(caught.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize("name", MACHINES)
def test_boards_that_ship_are_read(name: str) -> None:
    facts = machine_facts(name)
    assert facts.name == name
    assert facts.devices["console"].address
    assert facts.file is None


def test_a_machine_of_qemu_keeps_what_it_extends() -> None:
    plain, hypervisor = machine_facts("virt-arm64"), machine_facts("virt-el2-arm64")
    assert hypervisor.devices.items() > plain.devices.items()
    assert hypervisor.qemu.words[2] == "virt,virtualization=on"
    assert hypervisor.qemu.counter is plain.qemu.counter
    assert [machine_facts(name).board for name in MODELLED] == list(MODELLED)


def test_a_small_board(tmp_path: Path) -> None:
    facts = read(tmp_path, SMALL)
    assert (facts.name, facts.board, facts.ram_base, facts.ram_size) == (
        "board",
        "plain-arm64",
        0x4000_0000,
        16 << 20,
    )
    assert facts.start is not None
    assert (facts.start.level, facts.start.registers) == ("EL1", {})
    assert facts.file == tmp_path / "board.toml"


def test_memory_devices_and_registers(tmp_path: Path) -> None:
    facts = read(
        tmp_path,
        SMALL
        + """
[memory.sram]
address = 0x1_0000
size = 0x1_8000

[memory.uncached]
address = 0xc000_0000
alias = "ram"
offset = "1m"
size = "2m"

[start]
level = "EL2"
x0 = "fdt"
x1 = 7
device-tree = "behind"

[devices.console]
kind = "ns16550"
address = 0x1000_0000
reg-shift = 2
interrupt = 5

[registers]
unnamed = "fault"

[registers.clock]
address = 0x2000_0000
reads = 1
PLL = { offset = 0x10, reads = { rule = "last", set = 0x8000_0000, after = 3 } }
STATUS = { offset = 0x20, size = 8, reads = [1, 2] }
""",
    )
    assert facts.other_memory == ((0x1_0000, 0x1_8000),)
    assert facts.aliases == (Alias(0xC000_0000, 2 << 20, 0x4010_0000),)
    assert facts.start is not None
    assert (facts.start.level, facts.start.registers, facts.start.tree) == ("EL2", {"x0": "fdt", "x1": 7}, "behind")
    console = facts.devices["console"]
    assert (console.interrupt, console.space, console.properties) == (
        5,
        Space.MEMORY,
        {"reg-shift": 2, "reg-io-width": 1},
    )
    (clock,) = facts.ranges
    assert (clock.size, clock.rule) == (4096, Rule(Reads.CONSTANT, 1))
    assert [(one.name, one.rule) for one in clock.registers] == [
        ("PLL", Rule(Reads.LAST, bits=0x8000_0000, after=3)),
        ("STATUS", Rule(Reads.LIST, values=(1, 2))),
    ]
    assert facts.unnamed == Rule(Reads.FAULT)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cpu = 'arm64'\n", "board.toml:1:1: has no memory: add [memory.ram] with address and size"),
        ("cpu = 'mips'\n", "board.toml:1:1: cpu: 'mips' does not exist; there are amd64, arm64, riscv64"),
        ("cpu = 'amd64'\n", "board.toml:1:1: cpu: an amd64 board is a PC"),
        ("cpu = \n", "board.toml:1:7: Invalid value"),
        (f"{SMALL}timebase = 5\n", "board.toml:6:1: memory.ram.timebase: no such key here"),
        (f"{SMALL}offset = 5\nalias = 'x'\n", "board.toml:7:1: memory.ram.alias: 'x' does not exist"),
        (f"tiembase = 5\n{SMALL}", "board.toml:1:1: tiembase: no such key here: did you mean 'timebase'?"),
        (
            f"{SMALL}\n[devices]\nconsole = {{ kind = 'pl0111', address = 1 }}\n",
            "board.toml:8:13: devices.console.kind: 'pl0111' does not exist: did you mean 'pl011'?",
        ),
        (
            f"{SMALL}\n[devices.console]\nkind = 'pl011'\naddress = 'x'\n",
            "board.toml:9:1: devices.console.address: is 'x', and must be a number such as 0x1000, or \"512m\"",
        ),
        (f"{SMALL}\n[devices.console]\nkind = 'pl011'\n", "board.toml:7:2: devices.console: lacks 'address'"),
        (
            f"{SMALL}\n[devices]\na = {{ kind = 'pl011', address = 0 }}\nb = {{ kind = 'pl031', address = 0xff0 }}\n",
            "board.toml:7:2: devices: the ranges at 0x0 and 0xff0 overlap",
        ),
        (f"{SMALL}\n[start]\nlevel = 'EL4'\n", "board.toml:8:1: start.level: 'EL4' does not exist"),
        (f"{SMALL}\n[start]\nx0 = 'dtb'\n", "board.toml:8:1: start.x0: 'dtb' does not exist"),
        (
            f"{SMALL}\n[registers.a]\naddress = 0\nR = {{ offset = 0, reads = 'fault' }}\n",
            'board.toml:9:19: registers.a.R.reads: "fault" is for a range',
        ),
        (f"{SMALL}\n[registers.a]\naddress = 0\nreads = []\n", "board.toml:9:1: registers.a.reads: must be a number"),
        ("extends = 'virtarm64'\n", "board.toml:1:1: extends: 'virtarm64' does not exist: did you mean"),
        (
            f"{SMALL}\n[devices.mine]\nkind = 'pl011'\naddress = 0x1_0000_0000_0000\n",
            "board.toml:9:1: devices.mine.address: is 0x1000000000000, and must be 0x0 to",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, why: str) -> None:
    assert refused(tmp_path, text).startswith(why)


def test_a_board_that_ships_is_changed(tmp_path: Path) -> None:
    facts = read(tmp_path, 'extends = "virt-arm64"\nstarts = "plain-arm64"\n[devices]\npci = false\n')
    assert "pci" not in facts.devices
    assert facts.devices["console"] == machine_facts("virt-arm64").devices["console"]


def test_no_such_board() -> None:
    with pytest.raises(UsageError, match=r"^x: no such machine; there are virt-riscv64, .*, or a file: ./BOARD.toml$"):
        machine_facts("x")
    with pytest.raises(UsageError, match=r"^no.toml: No such file or directory$"):
        machine_facts("./no.toml")


def test_a_file_extends_another(tmp_path: Path) -> None:
    """Tables are merged, rules are not; and what the other file names is beside that."""
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor/base.toml").write_text(
        SMALL + '[devices.d]\nkind = "own.py:D"\naddress = 0x1000\n'
        '[registers.r]\naddress = 0x2000_0000\nA = { offset = 4, reads = { rule = "last", set = 1, after = 3 } }\n'
    )
    facts = read(
        tmp_path,
        'extends = "vendor/base.toml"\ncpus = 2\n[registers.r.A]\nreads = { rule = "last", toggle = 6, clear = 1 }\n',
    )
    assert (facts.maximum_cpus, facts.ram_size, facts.file) == (2, 16 << 20, tmp_path / "board.toml")
    assert facts.devices["d"].model == f"{tmp_path}/vendor/own.py:D"
    assert [(one.name, one.offset, one.rule) for one in facts.ranges[0].registers] == [
        ("A", 4, Rule(Reads.LAST, clear=1, toggle=6))
    ]
    assert str(facts.ranges[0].registers[0].rule) == "what was written with 0x1 clear, 0x6 toggling"


def test_what_is_wrong_in_the_file_that_is_extended_is_said_of_that(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(SMALL + '[registers.r]\naddress = "here"\n')
    assert refused(tmp_path, 'extends = "base.toml"\n[registers.r]\nsize = 4\n').startswith(
        "base.toml:7:1: registers.r.address: is 'here'"
    )
    assert refused(tmp_path, 'extends = "./no.toml"\n').startswith("board.toml:1:1: extends: there is no file ")
    assert (
        refused(tmp_path, 'extends = "board.toml"\n') == "board.toml:1:1: extends: more than 4 files extend each other"
    )
