"""--load and --dtb: what a firmware image finds in memory, and the one line for what cannot be."""

import re
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime import Machine, Trace, open_image
from kinst.runtime.cli import run
from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_image as elf_image
from tests.images import real_image
from tests.runtime.test_cli import SAMPLE
from tests.samples.machines import MACHINES
from tests.writers.elf import EM_RISCV, ET_EXEC, Part, elf64

RISCV_RAM = 0x8000_0000
# wfi; j .-4
WAITS = bytes.fromhex("73005010 f5bf".replace(" ", ""))


def firmware(folder: Path) -> Path:
    path = folder / "firmware.elf"
    path.write_bytes(elf64(EM_RISCV, RISCV_RAM, [Part(".text", RISCV_RAM, WAITS, 5)], kind=ET_EXEC))
    return path


def told_of_next_stage(trace: Trace) -> tuple[int, ...]:
    """OpenSBI's struct fw_dynamic_info in a2: magic, version, address, mode, options."""
    guest = trace.guest.ql
    return struct.unpack("<5Q", bytes(guest.mem.read(guest.arch.regs.read("a2"), 40)))


def test_firmware_finds_files_and_is_told_of_the_first(tmp_path: Path) -> None:
    """And that it runs in S mode."""
    files = {0x8100_0000: b"second stage", 0x8200_0001: b"more"}
    with (
        open_image(firmware(tmp_path)) as image,
        image.trace("BEGIN", machine=Machine(load=files, clock="icount")) as trace,
    ):
        trace.run(seconds=1e-6)
        guest = trace.guest.ql
        assert bytes(guest.mem.read(0x8100_0000, 12)) == b"second stage"
        assert bytes(guest.mem.read(0x8200_0001, 4)) == b"more"
        assert told_of_next_stage(trace) == (0x4942534F, 2, 0x8100_0000, 1, 0)


def test_without_files_firmware_is_told_what_qemu_tells(tmp_path: Path) -> None:
    with open_image(firmware(tmp_path)) as image, image.trace("BEGIN", machine=Machine(clock="icount")) as trace:
        trace.run(seconds=1e-6)
        assert told_of_next_stage(trace) == (0x4942534F, 2, 0, 1, 0)


def test_a_device_tree_reaches_the_guest(tmp_path: Path) -> None:
    given = flatten(Node("", {"model": "a board of mine"}))
    with (
        open_image(firmware(tmp_path)) as image,
        image.trace("BEGIN", machine=Machine(dtb=given, clock="icount")) as trace,
    ):
        trace.run(seconds=1e-6)
        guest = trace.guest.ql
        found = bytes(guest.mem.read(guest.arch.regs.read("a1"), 200))
    assert b"a board of mine\0" in found
    assert b"memory@80000000\0" in found


def refused(*words: str) -> str:
    result = CliRunner().invoke(run, [*words, "-qn", "BEGIN", "--wall-timeout", "5"], prog_name="kinst-run")
    assert result.exit_code in (1, 2), result.stderr
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("0x80000000", "--load file@0x80000000: 0x80000000 to 0x80001000 overlaps firmware.elf, 0x80000000 to"),
        ("0x7ffff001", "is not in RAM, 0x80000000 to 0x88000000: see --memory"),
        ("2281699328", "--load file@0x87fff800: 0x87fff800 to 0x88000800 is not in RAM"),
        ("0x87c00000", "overlaps the device tree, 0x87c00000 to"),
    ],
)
def test_a_place_that_is_taken_is_refused(tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "file").write_bytes(bytes(4096))
    assert why in refused(str(firmware(tmp_path)), "--load", f"{tmp_path / 'file'}@{place}")


def test_files_may_not_overlap_each_other_or_the_initrd(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(4096))
    (tmp_path / "b").write_bytes(bytes(4096))
    image = str(firmware(tmp_path))
    both = ("--load", f"{tmp_path / 'a'}@0x81000000", "--load", f"{tmp_path / 'b'}@0x81000fff")
    assert "--load b@0x81000fff: 0x81000fff to 0x81001fff overlaps a, 0x81000000 to 0x81001000" in refused(image, *both)
    over = ("--load", f"{tmp_path / 'a'}@0x87bff000", "--initrd", str(tmp_path / "b"))
    assert "overlaps the initrd, 0x87bff000 to 0x87c00000" in refused(image, *over)


def test_a_kernel_takes_the_room_that_its_header_asks_for(tmp_path: Path) -> None:
    header = bytes(16) + (0x10_0000).to_bytes(8, "little") + bytes(32) + b"RSC\x05" + bytes(4)
    (tmp_path / "Image").write_bytes(header)
    (tmp_path / "b").write_bytes(b"b")
    files = (f"{tmp_path / 'Image'}@0x80200000", f"{tmp_path / 'b'}@0x802fffff")
    line = refused(str(firmware(tmp_path)), "--load", files[0], "--load", files[1])
    assert "overlaps Image, 0x80200000 to 0x80300000" in line


@pytest.mark.parametrize("text", ["x", "@0x100", "x@", "x@1g", "x@-1", "x@0x" + "f" * 17, "no such file@0x100"])
def test_what_is_no_file_at_an_address_is_refused(text: str) -> None:
    assert refused(str(SAMPLE), "--load", text).startswith("kinst-run: --load")


def test_a_device_tree_needs_a_machine_that_has_one(tmp_path: Path) -> None:
    (tmp_path / "tree").write_bytes(flatten(Node("")))
    assert "--dtb: pc-amd64 has no device tree" in refused(
        str(MACHINES["amd64"].image), "--dtb", str(tmp_path / "tree")
    )
    assert "--dtb: no flattened device tree" in refused(str(firmware(tmp_path)), "--dtb", str(firmware(tmp_path)))
    call = ("--call", "fibonacci(3)", "--dtb", str(tmp_path / "tree"))
    assert "--load, --stage and --dtb are for an image that boots" in refused(str(MACHINES["arm64"].image), *call)


# auipc t0, 0x1000; li a1, 1; sb a1, OFFSET(t0); jr t0: a byte into the file at 16 MiB, which is then started
@pytest.mark.parametrize(
    ("store", "warnings"),
    [
        (0x00B2_8823, "wrote over 0x81000010 to 0x81000011 of it"),
        (0x7EB2_8FA3, "wrote over 0x810007ff to 0x81000800 of it"),  # room that the header asks for
        (0x0000_0013, ""),
    ],
)
def test_a_file_that_firmware_wrote_over_is_told_of(tmp_path: Path, store: int, warnings: str) -> None:
    code = struct.pack("<4I", 0x0100_0297, 0x0010_0593, store, 0x0002_8067)
    path = tmp_path / "firmware.elf"
    path.write_bytes(elf64(EM_RISCV, RISCV_RAM, [Part(".text", RISCV_RAM, code, 5)], kind=ET_EXEC))
    header = WAITS + bytes(10) + (0x800).to_bytes(8, "little") + bytes(32) + b"RSC\x05" + bytes(4)
    with (
        open_image(path) as image,
        image.trace("BEGIN", machine=Machine(load={0x8100_0000: header}, clock="icount")) as trace,
    ):
        trace.run(seconds=1e-6)
        assert ("\n".join(trace.messages)[-len(warnings) :] if warnings else trace.messages) == (warnings or ())


def test_opensbi_starts_u_boot(tmp_path: Path) -> None:
    """The real chain: firmware in M mode is the image, and starts what was loaded for it in S mode."""
    stage = elf_image(real_image("u-boot-riscv64-smode"))
    binary = tmp_path / "u-boot.bin"
    segments = [one for one in stage.segments if one.kind == PT_LOAD]
    low = min(one.load_address for one in segments)
    content = bytearray(max(one.load_address + one.file_size for one in segments) - low)
    for one in segments:
        at = one.load_address - low
        content[at : at + one.file_size] = stage.data[one.offset : one.offset + one.file_size].tobytes()
    binary.write_bytes(content)
    console = tmp_path / "console"
    words = ("--load", f"{binary}@{low:#x}", "--until", "^U-Boot 20", "--wall-timeout", "60", "--console", str(console))
    program = "fbt:::entry { @ = count(); }"
    image = real_image("opensbi-1.6")

    result = CliRunner().invoke(run, [*words, "--clock", "icount", "-qn", program, str(image)])

    assert result.exit_code == 0, result.stderr
    assert re.search(r"Next Mode +: S-mode", console.read_text())
    assert int(result.stdout.split()[-1]) > 100_000
