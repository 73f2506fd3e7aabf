"""Disks as real guests use them, and as users give them: Debian's U-Boot reads a file system and writes sectors."""

import re
import struct
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime import End, Machine, Trace, open_image
from kinst.runtime.cli import run
from kinst.runtime.machine.disk import open_disk
from kinst.runtime.tracing.given import AnyDisk
from tests.images import real_image
from tests.writers.fat import SECTOR, file_system

TEXT = bytes(range(256)) * 300
MEMORY = {"u-boot-arm64": 0x4200_0000, "u-boot-riscv64": 0x8200_0000}
# A function that returns 1, and one that returns 2
CODE = {
    "u-boot-arm64": [struct.pack("<II", 0xD280_0000 | number << 5, 0xD65F_03C0) for number in (1, 2)],
    "u-boot-riscv64": [struct.pack("<II", 0x0000_0513 | number << 20, 0x0000_8067) for number in (1, 2)],
}


def command(trace: Trace, text: str) -> str:
    """What a command prints until the next prompt."""
    before = len(trace.console)
    trace.type(text.encode())
    for _ in range(1000):
        trace.run(seconds=0.01)
        if trace.console[before:].endswith(b"\n=> "):
            return trace.console[before:].decode()
    raise AssertionError(f"{text}: no prompt behind {trace.console[before:]!r}")


@pytest.mark.parametrize("name", MEMORY)
def test_firmware_reads_a_file_system_and_writes_a_disk(name: str, tmp_path: Path) -> None:
    memory, (one, two) = MEMORY[name], CODE[name]
    # Whole sectors go to their place by DMA; U-Boot copies what is less than one.
    before = file_system({"ONE.BIN": one.ljust(SECTOR), "TWO.BIN": two.ljust(SECTOR), "LARGE.BIN": TEXT})
    kept, written = tmp_path / "kept", tmp_path / "written"
    kept.write_bytes(before)
    written.write_bytes(bytes(SECTOR * 64))
    disks: list[AnyDisk] = [kept, (written, "rw")]
    with open_image(real_image(name)) as image, image.trace(machine=Machine(clock="icount", disks=disks)) as trace:
        assert trace.run(seconds=60, until="Hit any key") is End.UNTIL
        command(trace, "\n")
        command(trace, "virtio scan\n")
        assert re.search(r"512 +ONE\.BIN\s+512 +TWO\.BIN\s+76800 +LARGE\.BIN\s+3 file", command(trace, "ls virtio 0\n"))
        assert f"{len(TEXT)} bytes read" in command(trace, f"load virtio 0 {memory:#x} large.bin\n")
        assert f"{zlib.crc32(TEXT):08x}" in command(trace, f"crc32 {memory:#x} {len(TEXT):#x}\n")
        for file, result in (("one", 1), ("two", 2)):  # code that a disk's content replaces
            command(trace, f"load virtio 0 {memory + 0x20_0000:#x} {file}.bin\n")
            assert f"rc = 0x{result}" in command(trace, f"go {memory + 0x20_0000:#x}\n")
        for disk in (0, 1):
            command(trace, f"virtio dev {disk}\n")
            assert "1 blocks written: OK" in command(trace, f"virtio write {memory:#x} 5 1\n")
            assert "1 blocks read: OK" in command(trace, f"virtio read {memory + 0x10_0000:#x} 5 1\n")
            same = command(trace, f"cmp.b {memory:#x} {memory + 0x10_0000:#x} 200\n")
            assert "512 byte(s) were the same" in same
    assert kept.read_bytes() == before
    assert written.read_bytes() == bytes(SECTOR * 5) + TEXT[:SECTOR] + bytes(SECTOR * 58)


KERNEL = "samples/kernel-riscv64.elf"


@pytest.mark.parametrize(
    ("option", "status", "why"),
    [
        ("missing.img", 2, "missing.img: cannot be a disk: No such file or directory"),
        ("missing.img,rw", 2, "missing.img: cannot be a disk: No such file or directory"),
        ("disk.img,wr", 2, "disk.img,wr: cannot be a disk: No such file or directory"),
        ("disk.img,rw", 1, "disk.img: is in use as the disk of another run, or given twice"),
        (",ro", 2, ".: cannot be a disk: not a regular file"),
    ],
)
def test_a_disk_that_cannot_be_had_is_one_line(
    option: str, status: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Path(KERNEL).absolute()
    (tmp_path / "disk.img").write_bytes(bytes(SECTOR))
    monkeypatch.chdir(tmp_path)
    in_use = open_disk(Path("disk.img"))
    result = CliRunner().invoke(run, ["--disk", option, str(image)], prog_name="kinst-run")
    assert (result.exit_code, result.stderr) == (status, f"kinst-run: {why}\n")
    assert (tmp_path / "disk.img").read_bytes() == bytes(in_use.size)


def test_a_machine_has_room_for_so_many_disks(tmp_path: Path) -> None:
    disk = tmp_path / "disk.img"
    disk.write_bytes(bytes(SECTOR))
    disks = ["--disk", str(disk)] * 8
    assert CliRunner().invoke(run, ["-q", *disks, KERNEL]).exit_code == 0
    result = CliRunner().invoke(run, ["-q", *disks, "--rng-seed", "1", KERNEL])
    assert (result.exit_code, result.stderr) == (
        1,
        "kinst-run: virt-riscv64: has room for 8 disks and other devices, not for 9\n",
    )
