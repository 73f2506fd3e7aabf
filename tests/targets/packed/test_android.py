"""Android's boot images: as mkbootimg makes them, or in memory; what is in them, and what cannot be read."""

import gzip
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kinst.targets.errors import ImageError
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.packed.unpacking import unpacked
from tests.commands.in_process import command
from tests.targets.packed.test_raw import SAMPLES

SAMPLE = SAMPLES / "kernel-arm64.elf"
KERNEL = SAMPLE.read_bytes()


def boot(version: int, kernel: bytes = KERNEL, ramdisk: bytes = b"ramdisk" * 999, page: int = 4096) -> bytes:
    """Of version 3 and later."""
    head = b"ANDROID!" + struct.pack("<4I16x", len(kernel), len(ramdisk), 0, 1584) + struct.pack("<I", version)
    return b"".join(part.ljust(len(part) + -len(part) % page, b"\0") for part in (head, kernel, ramdisk))


def vendor(page: int, ramdisk: bytes, tree: bytes) -> bytes:
    head = bytearray(2112)
    struct.pack_into("<8s2I8xI", head, 0, b"VNDRBOOT", 4, page, len(ramdisk))
    struct.pack_into("<I", head, 2100, len(tree))
    return b"".join(part.ljust(len(part) + -len(part) % page, b"\0") for part in (bytes(head), ramdisk, tree))


def read(data: bytes, reading: Reading = AS_IT_SAYS) -> tuple[bytes, str]:
    found = unpacked(np.frombuffer(data, np.uint8), reading)
    return found.data.tobytes(), found.packing


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("page", ["2048", pytest.param("16384", marks=pytest.mark.long)])
def test_the_kernel_that_mkbootimg_packs_is_read(version: int, page: str, tmp_path: Path) -> None:
    if shutil.which("mkbootimg") is None:
        pytest.skip("no mkbootimg")
    kernel, disk, out = (tmp_path / name for name in ("kernel", "disk", "boot.img"))
    kernel.write_bytes(gzip.compress(KERNEL))
    disk.write_bytes(b"ramdisk" * 999)
    words: list[str | Path] = [
        "--header_version",
        str(version),
        "--kernel",
        kernel,
        "--ramdisk",
        disk,
        "--pagesize",
        page,
        "-o",
        out,
    ]
    more: list[str | Path] = ["--dtb", disk] if version == 2 else []
    subprocess.run(["mkbootimg", *words, *more], check=True)
    assert read(out.read_bytes()) == (KERNEL, "Android boot image (kernel), gzip")
    names = ("ramdisk", "dtb") if version == 2 else ("ramdisk",)
    for name in names:
        assert read(out.read_bytes(), Reading(payload=name))[0] == disk.read_bytes()


def test_newer_images_have_pages_of_4096_bytes(tmp_path: Path) -> None:
    assert read(boot(4)) == (KERNEL, "Android boot image (kernel)")
    assert read(boot(3), Reading(payload="ramdisk"))[0] == b"ramdisk" * 999
    assert read(vendor(2048, b"disk", b"tree"), Reading(payload="dtb"))[0] == b"tree"
    path, out = tmp_path / "boot.img", tmp_path / "out.img"
    path.write_bytes(boot(4))
    assert "vfs_read entry" in command("list_probes", path, "fbt::vfs_read:").stdout
    done = command("rewrite", path, "--probe", "fbt::vfs_read:entry", "-o", out)
    assert "is read, and not written: take its kernel out" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("data", "reading", "why"),
    [
        (boot(3), Reading(payload="dtb"), r"no dtb in it, but kernel \([\d,]+ bytes\), ramdisk \(6,993 bytes\)"),
        (vendor(2048, b"disk", b""), AS_IT_SAYS, r"no kernel in it, but ramdisk \(4 bytes\)"),
        (boot(3)[:9000], AS_IT_SAYS, "truncated: the kernel in this Android boot image"),
        (boot(3)[:900], AS_IT_SAYS, "truncated: this Android boot image ends in its header"),
        (boot(0), AS_IT_SAYS, "has pages of 0 bytes"),
        (vendor(1 << 20, b"disk", b"tree"), AS_IT_SAYS, "has pages of 1048576 bytes"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, reading: Reading, why: str) -> None:
    with pytest.raises(ImageError, match=why):
        read(data, reading)
