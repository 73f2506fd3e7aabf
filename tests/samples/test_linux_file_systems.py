"""What makes initial and whole file systems for Linux: `samples/linux/mkinitrd` and `mkdebian`."""

import lzma
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.debian_boots import answers, typed

FOLDER = Path("samples/linux")
MKDEBIAN: dict[str, Any] = runpy.run_path(str(FOLDER / "mkdebian"))
BANNER = b"Linux version 6.1.0-50-cloud-amd64 (debian-kernel@lists.debian.org) ..."


def run(*words: object) -> str:
    """What a script that fails says."""
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr


def header(number: int) -> bytes:
    return b"\x7fELF" + bytes(14) + number.to_bytes(2, "little")


def test_modules_are_in_their_order(tmp_path: Path) -> None:
    for name, data in (("busybox", b"b"), ("init", b"i"), ("z.ko", b"first"), ("a.ko.xz", lzma.compress(b"second"))):
        (tmp_path / name).write_bytes(data)
    words = [FOLDER / "mkinitrd", *(tmp_path / name for name in ("busybox", "init", "initrd", "z.ko", "a.ko.xz"))]
    subprocess.run([sys.executable, *words], check=True)
    archive = (tmp_path / "initrd").read_bytes()
    assert re.findall(rb"modules/([^\0]+)\0+(\w+)", archive) == [(b"000-z.ko", b"first"), (b"001-a.ko", b"second")]
    (tmp_path / "a.ko.xz").write_bytes(b"plain")
    assert re.fullmatch(r"mkinitrd: a MODULE whose name ends in \.xz is not .*\n", run(*words))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (header(62) + BANNER, ("amd64", "6.1.0-50-cloud-amd64")),
        (header(243) + b"Linux version 6.12.107+deb13-riscv64 (", ("riscv64", "6.12.107+deb13-riscv64")),
        (bytes(0x38) + b"ARM\x64" + b"Linux version 7.1-arm64 (", ("arm64", "7.1-arm64")),
    ],
)
def test_a_kernel_says_what_it_is(content: bytes, expected: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "kernel"
    path.write_bytes(content)
    assert MKDEBIAN["identified"](path) == expected


def test_suites() -> None:
    releases = ("6.1.0-50-cloud-amd64", "6.12.107+deb13-riscv64", "7.2.13+deb14-riscv64")
    assert [*map(MKDEBIAN["suite_of"], releases)] == ["bookworm", "trixie", "sid"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (header(62), "no Linux with its version readable in it; give vmlinux of linux-image-...-dbg"),
        (header(3) + BANNER, "no Linux with its version readable in it; give vmlinux of linux-image-...-dbg"),
    ],
)
def test_what_is_no_kernel_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel"
    path.write_bytes(content)
    assert run(FOLDER / "mkdebian", path, tmp_path / "out") == f"mkdebian: {path}: {message}\n"
    path.write_bytes(header(62) + b"Linux version 5.10 (")
    assert run(FOLDER / "mkdebian", path, tmp_path / "out").startswith("mkdebian: Linux 5.10: name the suite ")
    assert run(FOLDER / "mkdebian", tmp_path / "none", tmp_path / "out").endswith("none: No such file or directory\n")
    assert not (tmp_path / "out").exists()


def test_the_disks_modules_come_after_what_they_need(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/modules/6"
    folder.mkdir(parents=True)
    (folder / "modules.dep").write_text(
        "k/virtio.ko:\nk/virtio-ring.ko: k/virtio.ko\nk/virtio_blk.ko.xz: k/virtio-ring.ko k/virtio.ko\n"
        "k/jbd2.ko:\nk/ext4.ko: k/mbcache.ko k/jbd2.ko\nk/mbcache.ko:\nk/crc32c_generic.ko:\nk/other.ko:\n"
    )
    names = [path.name for path in MKDEBIAN["modules"](tmp_path, "6")]
    loaded = [
        "virtio.ko",
        "virtio-ring.ko",
        "virtio_blk.ko.xz",
        "crc32c_generic.ko",
        "jbd2.ko",
        "mbcache.ko",
        "ext4.ko",
    ]
    assert names == loaded


def test_answers_are_what_the_guest_printed_between_its_marks() -> None:
    console = (
        "# begin; x; end\r\n\x1b[?2004lbegin\r\n[    1.5] a driver\r\n\x1b[1mrunning\x1b[0m \r\n\r\nend\r\nmore\r\n"
    )
    assert answers(console) == ("running",)
    assert "begin" not in typed(["x"])
    assert answers("login: ") == ()
