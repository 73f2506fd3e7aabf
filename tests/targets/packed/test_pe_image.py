"""EFI applications: sections and entry as LIEF sees them, one section of a unified kernel, and what cannot be read."""

import struct
from pathlib import Path

import lief
import numpy as np
import pytest

from kinst.targets.errors import ImageError
from kinst.targets.image import open_image
from tests.commands.in_process import command, kinst_run

BASE = 0x1_4000_0000
CODE, DATA = bytes.fromhex("c0035fd6") * 4, b"data of it"  # ret
MACHINES = {"amd64": 0x8664, "arm64": 0xAA64, "riscv64": 0x5064}
_CODE_FLAGS, _DATA_FLAGS = 0x6000_0020, 0xC000_0040


def pe(machine: int = 0xAA64, magic: int = 0x20B, *sections: tuple[bytes, int, bytes, int, int]) -> bytes:
    """Sections: name, address, content, size in memory, characteristics."""
    sections = sections or ((b".text", 0x1000, CODE, 0x10, _CODE_FLAGS), (b".data", 0x2000, DATA, 0x1800, _DATA_FLAGS))
    optional = struct.pack("<HBBIIIIIQIIHHHHHHIIIIHHQQQQII", magic, 1, 0, 0x200, 0x200, 0, 0x1004, 0x1000, BASE, 0x1000,
                           0x200, 0, 0, 0, 0, 0, 0, 0, 0x4000, 0x200, 0, 10, 0, 0, 0, 0, 0, 0, 0)  # fmt: skip
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    head += struct.pack("<4sHHIIIHH", b"PE", machine, len(sections), 0, 0, 0, len(optional), 0x22) + optional
    rows, body, at = b"", b"", 0x200
    for name, address, data, size, flags in sections:
        rows += struct.pack("<8s4I12xI", name, size, address, len(data), at, flags)
        body += data.ljust(0x200, b"\0")
        at += 0x200
    return (head + rows).ljust(0x200, b"\0") + body


@pytest.mark.parametrize("machine", MACHINES)
def test_sections_are_those_that_lief_sees(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "boot.efi"
    path.write_bytes(pe(MACHINES[machine]))
    image, theirs = open_image(path), lief.PE.parse(str(path))
    assert theirs is not None
    assert (image.facts.name, image.module, image.packing) == (machine, "boot", "PE/EFI image")
    assert image.entry == theirs.entrypoint == BASE + 0x1004
    found = {one.name: (one.address, one.size) for one in image.sections if one.address}
    base = theirs.optional_header.imagebase
    assert found == {one.name: (base + one.virtual_address, len(one.content)) for one in theirs.sections} | {
        ".text": (BASE + 0x1000, 0x10)
    }
    assert image.read(BASE + 0x1000, 16) == CODE
    assert [(one.address, one.size) for one in image.code_regions] == [(BASE + 0x1000, 0x10)]
    assert image.segments[1].size == 0x1800


def test_it_is_listed_and_not_written(tmp_path: Path) -> None:
    path, out = tmp_path / "boot.efi", tmp_path / "out.efi"
    path.write_bytes(pe())
    assert command("list_probes", path, "kinst::0x140001000:").stdout.count("kinst") == 1
    done = command("rewrite", path, "--probe", "kinst::0x140001000:", "-o", out)
    assert "PE/EFI image: is read, and not written" in done.stderr
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [path])


def test_a_function_of_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "boot.efi"
    path.write_bytes(pe(0xAA64, 0x20B, (b".text", 0x1000, bytes.fromhex("00080091c0035fd6"), 8, _CODE_FLAGS),
                        (b".d", 0x2000, b"x", 1, _DATA_FLAGS)))  # fmt: skip
    done = kinst_run(path, "--call", "0x140001000(40)")
    assert done.stdout == "0x140001000(40) = 0x2a\n"


def test_one_section_is_an_image_of_its_own(tmp_path: Path) -> None:
    kernel = (Path(__file__).parents[3] / "samples" / "kernel-arm64.elf").read_bytes()
    whole = pe(0xAA64, 0x20B, (b".text", 0x1000, CODE, 16, _CODE_FLAGS), (b".linux", 0x2000, b"", 0, _DATA_FLAGS))
    at = whole.index(b".linux")
    row = struct.pack("<8s4I", b".linux", len(kernel), 0x2000, len(kernel), len(whole))
    whole = whole[:at] + row + whole[at + len(row) :]
    path = tmp_path / "linux.efi"
    path.write_bytes(whole + kernel)
    found = command("list_probes", path, "--payload", ".linux", "fbt::vfs_read:entry")
    assert "vfs_read entry" in found.stdout
    assert "there are the sections .text, .linux" in command("list_probes", path, "--payload", "linux").stderr


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (pe(0x14C, 0x10B), "a PE/EFI image for 32-bit x86: only 64-bit images can be probed"),
        (pe(0x1C2, 0x10B), "a PE/EFI image for 32-bit ARM"),
        (pe(0x1234), "for machine 0x1234"),
        (pe(0xAA64, 0x10B), "no PE32[+] header"),
        (pe()[:0x205], r"truncated: section \.text"),
        (pe()[:0x50], "truncated: this PE/EFI image ends in its header"),
        (pe()[:0xC8], "(no PE32|ends in their table)"),
        (pe(0xAA64, 0x20B, (b".a", 0x1000, CODE, 16, _CODE_FLAGS), (b".b", 0x1008, CODE, 16, _CODE_FLAGS)), "overlap"),
        (pe(0xAA64, 0x20B, *[(b".a", 0x1000, b"", 0, _DATA_FLAGS)]), "no code"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "boot.efi"
    path.write_bytes(data)
    with pytest.raises(ImageError, match=why):
        open_image(path)


def test_sections_do_not_multiply_what_is_in_the_file(tmp_path: Path) -> None:
    whole = np.frombuffer(
        pe(0xAA64, 0x20B, *[(b"s%d" % row, row << 20, CODE, 16, _DATA_FLAGS) for row in range(1, 9)]), np.uint8
    )
    path = tmp_path / "boot.efi"
    data = bytearray(whole.tobytes())
    for row in range(8):
        at = data.index(b"s%d" % (row + 1))
        data[at + 8 : at + 12] = data[at + 16 : at + 20] = struct.pack("<I", len(data))
        data[at + 20 : at + 24] = bytes(4)
    path.write_bytes(data)
    with pytest.raises(ImageError, match="truncated: section s2"):
        open_image(path)
