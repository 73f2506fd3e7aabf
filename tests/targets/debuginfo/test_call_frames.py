"""Call frame information: every row of real images against readelf's, and single instructions by hand."""

import re
import struct
import subprocess
from pathlib import Path

import pytest

from kinst.targets.debuginfo.call_frames import CallFrames, FrameRow, Lost, Moved, RegisterRule, Saved, Unknown, Value
from kinst.targets.image import open_image
from tests.images import real_image
from tests.writers.elf import EM_RISCV, Part, elf64

SAMPLES = Path(__file__).parents[3] / "samples"
RISCV = "zero ra sp gp tp t0 t1 t2 s0 s1"
NAMES = {
    "amd64": ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "ra"],
    "arm64": [*(f"x{n}" for n in range(31)), "sp"],
    "riscv64": [*RISCV.split(" "), *(f"a{n}" for n in range(8)), *(f"s{n}" for n in range(2, 12))],
}
CODE, FRAMES = 0x80000000, 0x80002000


def text_of(rule: RegisterRule | None) -> str:
    match rule:
        case Saved(offset=offset):
            return f"c{offset:+d}"
        case Value(offset=offset):
            return f"v{offset:+d}"
        case Unknown():
            return "exp"
        case _:
            return "u"


def rows_of_readelf(path: Path) -> list[tuple[int, str, dict[str, str]]]:
    """(address, CFA, rules by register) of every row of every FDE."""
    command = ["readelf", "--debug-dump=frames-interp", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found, columns, is_fde = [], list[str](), False
    for line in output.splitlines():
        kind = re.match(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ (CIE|FDE)", line)
        row = re.match(r"([0-9a-f]{16}) (\S+)\s*(.*)", line)
        if kind:
            is_fde = kind[1] == "FDE"
        elif line.split()[:1] == ["LOC"]:
            columns = line.split()[2:]
        elif row and is_fde:
            found.append((int(row[1], 16), row[2], dict(zip(columns, row[3].split(), strict=True))))
    return found


@pytest.mark.parametrize("name", ["kernel-amd64", "kernel-arm64", "kernel-riscv64", "gnumach"])
def test_every_row_is_readelfs(name: str) -> None:
    path = SAMPLES / f"{name}.elf" if name.startswith("kernel-") else real_image(name)
    image = open_image(path)
    frames, names = CallFrames(image), NAMES[image.facts.name]
    expected = rows_of_readelf(path)
    assert len(expected) > 250
    for address, cfa, rules in expected:
        row = frames.row_at(address)
        assert row is not None and row.cfa is not None
        assert f"{names[row.cfa[0]]}{row.cfa[1]:+d}" == cfa
        registers = {name: row.return_register if name == "ra" else names.index(name) for name in rules}
        shown = {name: text_of(row.registers.get(register)) for name, register in registers.items()}
        assert shown == {name: "u" if rule == "s" else rule for name, rule in rules.items()}


def row_after(instructions: bytes, path: Path, *, initial: bytes = b"\x0c\x02\x00", at: int = 8) -> FrameRow | None:
    """The row at `at` bytes after the start of a function with these instructions; data factor -4, code factor 1."""
    head = b"\x03\0\x01\x7c\x01" + initial
    cie = struct.pack("<II", len(head) + 4, 0xFFFFFFFF) + head
    body = struct.pack("<QQ", CODE, 64) + instructions
    frames = cie + struct.pack("<II", len(body) + 4, 0) + body
    code = Part(".text", CODE, b"\x13\0\0\0" * 64, 5)
    data = bytearray(elf64(EM_RISCV, CODE, [code, Part(".debug_frame", FRAMES, frames, 4)]))
    path.write_bytes(data)
    image = open_image(path)
    section = image.section(".debug_frame")
    assert section is not None
    flags = image.header.shoff + 64 * section.index + 8
    data[flags : flags + 8] = bytes(8)  # not loaded: that tells .debug_frame from .eh_frame
    path.write_bytes(data)
    return CallFrames(open_image(path)).row_at(CODE + at)


@pytest.mark.parametrize(
    ("instructions", "cfa", "registers"),
    [
        (b"\x0e\x10", (2, 16), {}),  # def_cfa_offset
        (b"\x0d\x08", (8, 0), {}),  # def_cfa_register
        (b"\x12\x08\x7c", (8, 16), {}),  # def_cfa_sf: -4 * -4
        (b"\x13\x7c", (2, 16), {}),  # def_cfa_offset_sf
        (b"\x0f\x01\x30", None, {}),  # def_cfa_expression
        (b"\x81\x02", (2, 0), {1: Saved(-8)}),  # offset
        (b"\x05\x09\x02", (2, 0), {9: Saved(-8)}),  # offset_extended
        (b"\x11\x09\x7e", (2, 0), {9: Saved(8)}),  # offset_extended_sf
        (b"\x2f\x09\x02", (2, 0), {9: Saved(8)}),  # GNU_negative_offset_extended
        (b"\x14\x09\x02", (2, 0), {9: Value(-8)}),  # val_offset
        (b"\x15\x09\x7e", (2, 0), {9: Value(8)}),  # val_offset_sf
        (b"\x09\x01\x05", (2, 0), {1: Moved(5)}),  # register
        (b"\x07\x01", (2, 0), {1: Lost()}),  # undefined
        (b"\x81\x02\x08\x01", (2, 0), {}),  # same_value
        (b"\x10\x01\x01\x30", (2, 0), {1: Unknown()}),  # expression
        (b"\x81\x02\xc1", (2, 0), {}),  # restore: the CIE says nothing of it
        (b"\x81\x02\x06\x01", (2, 0), {}),  # restore_extended
        (b"\x0e\x10\x0a\x0e\x20\x0b", (2, 16), {}),  # remember_state, restore_state
        (b"\x2e\x10\x00\x2d\x81\x02", (2, 0), {1: Saved(-8)}),  # GNU_args_size, nop, negate_ra_state
        (b"\x44\x0e\x10\x44\x0e\x20\x44\x0e\x30", (2, 32), {}),  # advance_loc by 4: the row of 8 holds at 8
        (b"\x02\x08\x0e\x10\x02\x01\x0e\x20", (2, 16), {}),  # advance_loc1
        (b"\x03\x08\x00\x0e\x10\x03\x01\x00\x0e\x20", (2, 16), {}),  # advance_loc2
        (b"\x04\x08\0\0\0\x0e\x10\x04\x01\0\0\0\x0e\x20", (2, 16), {}),  # advance_loc4
    ],
)
def test_instructions(
    instructions: bytes, cfa: tuple[int, int] | None, registers: dict[int, RegisterRule], tmp_path: Path
) -> None:
    assert row_after(instructions, tmp_path / "x.elf") == FrameRow(cfa, registers, 1)


def test_restore_goes_back_to_the_cie(tmp_path: Path) -> None:
    row = row_after(b"\x81\x02\xc1", tmp_path / "x.elf", initial=b"\x0c\x02\x00\x81\x03")
    assert row == FrameRow((2, 0), {1: Saved(-12)}, 1)


def test_what_is_not_described_has_no_row(tmp_path: Path) -> None:
    assert row_after(b"", tmp_path / "x.elf", at=64) is None
    assert row_after(b"", tmp_path / "x.elf", at=-4) is None
    assert row_after(b"\x3f", tmp_path / "x.elf") is None  # no instruction
