"""Sites in code that the CPU runs in another mode than it was read in: given back when they are hit first."""

import struct
from pathlib import Path

from tests.commands.in_process import kinst_run
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

START, CODE_AT = 0x10_0000, 0x10_1000
# As 64-bit code: mov $0x4f, %al behind a REX, out, and so on. As 32-bit code the 40 is an instruction of its own.
#   mov $0x3f8, %dx; mov $0x4e, %al; inc %eax; out; mov $0x4b, %al; out; mov $0xa, %al; out; cli; hlt
CODE = bytes.fromhex("66baf803 b04e 40 ee 40b04b ee b00a ee fa f4")


def image(path: Path) -> Path:
    """A multiboot image whose 32-bit start nothing gives away: the header is in a section of its own."""
    header = struct.pack("<III", 0x1BADB002, 0, -0x1BADB002 & 0xFFFFFFFF) + b"\x90" * 4
    parts = [Part(".boot", START, header, 4), Part(".text", CODE_AT, CODE, 5)]
    path.write_bytes(elf64(EM_X86_64, CODE_AT, parts, [Symbol("start", CODE_AT, len(CODE))]))
    return path


def test_a_site_in_32_bit_code_is_given_back_with_one_line(tmp_path: Path) -> None:
    path = image(tmp_path / "k.elf")
    plain = kinst_run(path)
    assert plain.stdout == "OK\n"

    probed = kinst_run(path, "-q", "-n", "kinst::start: { @fired = count(); }")

    assert (probed.returncode, probed.stdout.strip()) == (plain.returncode, "OK")
    lines = probed.stderr.splitlines()
    assert lines[0].endswith(
        f"no probe at {CODE_AT:#x}: the CPU runs 16- or 32-bit code there, and it was read as amd64"
    )
    assert len(set(lines)) == len(lines) > 1
