"""Names of registers from CMSIS-SVD files: what they are in a board, and what is refused."""

from pathlib import Path

import pytest

from kinst.targets.errors import UsageError
from kinst.targets.machines.board_file import read_board
from kinst.targets.machines.registers import Reads, Rule
from kinst.targets.machines.registry import BOARDS
from kinst.targets.machines.svd import SvdRegister, read_svd

CHIP = """\
<?xml version="1.0" encoding="utf-8"?>
<device schemaVersion="1.1">
  <name>CHIP</name>
  <size>32</size>
  <peripherals>
    <peripheral>
      <name>UART0</name>
      <baseAddress>0x40000000</baseAddress>
      <registers>
        <register><name>DR</name><addressOffset>0x0</addressOffset></register>
        <register><name>FLAGS</name><addressOffset>#100</addressOffset><size>16</size></register>
        <register><name>BYTE</name><addressOffset>6</addressOffset><size>8</size></register>
        <register><dim>3</dim><dimIncrement>4</dimIncrement><dimIndex>A,B,C</dimIndex>
          <name>CH%s</name><addressOffset>0x10</addressOffset></register>
        <cluster><dim>2</dim><dimIncrement>0x10</dimIncrement><name>DMA[%s]</name>
          <addressOffset>0x20</addressOffset>
          <register><name>SRC</name><addressOffset>0</addressOffset></register>
          <register derivedFrom="SRC"><name>DST</name><addressOffset>4</addressOffset></register>
        </cluster>
      </registers>
    </peripheral>
    <peripheral derivedFrom="UART0"><name>UART1</name><baseAddress>0x40001000</baseAddress></peripheral>
  </peripherals>
</device>
"""
BOARD = """\
cpu = "arm64"
[memory.ram]
address = 0x8000_0000
size = "16m"
[registers]
svd = "chip.svd"
"""


def svd(folder: Path, text: str = CHIP) -> Path:
    path = folder / "chip.svd"
    path.write_text(text)
    return path


def test_registers_have_the_names_of_the_file(tmp_path: Path) -> None:
    found = read_svd(svd(tmp_path))
    assert [(one.name, one.address - 0x4000_0000, one.size) for one in found if one.peripheral == "UART0"] == [
        ("DR", 0, 4),
        ("FLAGS", 4, 2),
        ("BYTE", 6, 1),
        ("CHA", 0x10, 4),
        ("CHB", 0x14, 4),
        ("CHC", 0x18, 4),
        ("DMA0_SRC", 0x20, 4),
        ("DMA0_DST", 0x24, 4),
        ("DMA1_SRC", 0x30, 4),
        ("DMA1_DST", 0x34, 4),
    ]
    assert SvdRegister("UART1", "DMA1_DST", 0x4000_1034, 4) in found


def test_a_board_keeps_its_own_names_and_rules(tmp_path: Path) -> None:
    svd(tmp_path)
    file = tmp_path / "board.toml"
    file.write_text(
        BOARD + 'unnamed = "last"\n[registers.serial]\naddress = 0x4000_0000\nsize = 0x1c\nreads = 3\n'
        "STATUS = { offset = 4, reads = 1 }\n"
    )
    serial, other = read_board(file, BOARDS).ranges
    assert [(one.name, one.offset, one.rule.value) for one in serial.registers] == [
        ("DR", 0, 3),
        ("STATUS", 4, 1),
        ("CHA", 0x10, 3),
        ("CHB", 0x14, 3),
        ("CHC", 0x18, 3),
    ]
    assert (other.name, other.address, other.size, other.rule) == ("UART1", 0x4000_1000, 0x38, Rule())


def test_nothing_answers_because_it_has_a_name(tmp_path: Path) -> None:
    svd(tmp_path)
    for more in ("", 'unnamed = "fault"\n'):
        (tmp_path / "board.toml").write_text(BOARD + more)
        assert read_board(tmp_path / "board.toml", BOARDS).ranges == ()
    (tmp_path / "board.toml").write_text(BOARD + '[registers.r]\naddress = 0x4000_0000\nreads = "fault"\n')
    (found,) = read_board(tmp_path / "board.toml", BOARDS).ranges
    assert (found.rule, found.registers) == (Rule(Reads.FAULT), ())


def test_a_board_in_another_folder_finds_it(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    svd(tmp_path / "vendor")
    (tmp_path / "vendor/board.toml").write_text(BOARD + 'unnamed = "last"\n')
    (tmp_path / "mine.toml").write_text('extends = "vendor/board.toml"\n')
    assert [one.name for one in read_board(tmp_path / "mine.toml", BOARDS).ranges] == ["UART0", "UART1"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no XML: no element found"),
        ("<device>", "is no XML"),
        ("<chip/>", "is no SVD file: it begins with <chip> and not with <device>"),
        ('<!DOCTYPE d [<!ENTITY a "b">]><device/>', "has a document type, which no SVD file needs"),
        (CHIP.replace("0x40000000", "here"), "<baseAddress>: 'here' is no number"),
        (CHIP.replace("<dim>3</dim>", "<dim>99999999</dim>"), "has more than 65536 registers"),
        (CHIP.replace("<name>UART0</name>", ""), "a <peripheral> lacks <name>"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = svd(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read_svd(path)
    assert str(caught.value).startswith(f"{path}: {why}")
    (tmp_path / "board.toml").write_text(BOARD)
    with pytest.raises(UsageError, match=r"board.toml:6:1: registers.svd: .*chip.svd: "):
        read_board(tmp_path / "board.toml", BOARDS)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_svd(tmp_path / "nothing.svd")
