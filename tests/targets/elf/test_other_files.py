"""Files that are no images: one line says what they are, as the tools that make them write them."""

import io
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kinst.targets.elf.other_files import kind_of
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("image"), io.BytesIO())
    return file.getvalue()


def gzipped_tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("image"), io.BytesIO())
    return file.getvalue()


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("image", "x")
    return file.getvalue()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (tar, "a tar archive: take the image out of it first"),
        (gzipped_tar, "a tar archive"),
        (zipped, "a zip archive"),
        (lambda: bytes(0x24) + b"\x18\x28\x6f\x01" + bytes(100), "a zImage of 32-bit ARM: only 64-bit images"),
        (lambda: bytes(4) + b"eGON.BT0" + bytes(100), "a boot loader for Allwinner's boot ROM"),
        (lambda: b"\x01\x00\x64\xaa" + bytes(100), "a package of Trusted Firmware"),
        (lambda: b"#!/bin/sh\n" * 10, "a script"),
        (lambda: bytes(range(200)), "no ELF magic at the start: a raw binary is read with --raw MACHINE@ADDRESS"),
    ],
)
def test_what_is_no_image_is_named(make: Callable[[], bytes], what: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(make())
    with pytest.raises(ImageError, match=rf"file: not an ELF image: {what}"):
        open_image(path)


@pytest.mark.long  # for who has the tools: the gate installs no more than it needs
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("mkfs.ext4", "-q", "-F", "FILE"), "an ext2, ext3 or ext4 file system"),
        (("mkfs.vfat", "FILE"), "a FAT file system"),
        (("sfdisk", "-q", "--label", "gpt", "FILE"), "a disk image with a GPT"),
        (("qemu-img", "create", "-q", "-f", "qcow2", "FILE", "1M"), r"a disk image \(qcow2\)"),
    ],
)
def test_what_tools_make_is_named(words: tuple[str, ...], what: str, tmp_path: Path) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]}")
    path = tmp_path / "file"
    path.write_bytes(bytes(2 << 20))
    subprocess.run(
        [str(path) if word == "FILE" else word for word in words], check=True, input=b"", capture_output=True
    )
    with pytest.raises(ImageError, match=what):
        open_image(path)


def test_every_kind_says_what_to_do() -> None:
    assert kind_of(b"\x31\x18\x10\x06").startswith("a UBIFS file system: take")
    assert kind_of(b"") == kind_of(bytes(100))
