"""Debian's kernels with Debian's modules: a file system on a disk is mounted, read and written."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, modules_of, real_image
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

# In the order in which they need each other; a kernel that has one of them built in has no such file.
MODULES = (
    *("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_mmio"),
    *("virtio_blk", "virtio-rng", "crc16", "crc32c_generic", "mbcache", "jbd2", "ext4"),
)
PROGRAMS = ("sh", "mount", "insmod", "cat", "cp", "sha256sum", "umount", "head", "od", "dd", "reboot")
INIT = b"""
mount -t devtmpfs none /dev
mount -t sysfs none /sys
cat /sys/block/vd?/serial /sys/block/vd?/ro
mount -t ext4 -o ro /dev/vda /a && mount -t ext4 /dev/vdb /b && mount -t ext4 /dev/vdc /c
sha256sum /a/large
cp /a/large /b/copy; cp /a/large /c/copy
umount /b; umount /c
mount -t ext4 /dev/vdb /b && sha256sum /b/copy
dd if=/dev/vda of=/dev/null bs=1M
cat /a/text
head -c 8 /dev/hwrng | od -t x1
echo done
reboot -f
"""
LARGE = bytes(range(251)) * 8000
TOOLS = tuple(shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin") or "" for name in ("mke2fs", "debugfs"))


def initial_file_system(kernel: str) -> bytes:
    modules = modules_of(kernel, "|".join(MODULES))
    busybox = real_image(f"busybox-{kernel.rpartition('-')[2]}").read_bytes()
    load = "".join(f"insmod /{name}.ko\n" for name in MODULES if name in modules)
    return archive(
        [
            *(Entry(name, DIRECTORY) for name in ("bin", "dev", "sys", "a", "b", "c")),
            Entry("dev/console", CHARACTERS, device=(5, 1)),
            *(Entry(f"{name}.ko", FILE, content) for name, content in modules.items()),
            Entry("bin/busybox", FILE, busybox),
            *(Entry(f"bin/{name}", LINK, b"busybox") for name in PROGRAMS),
            Entry("init", FILE, b"#!/bin/sh\n" + load.encode() + INIT),
        ]
    )


def disk(folder: Path, name: str) -> Path:
    files = folder / "files"
    files.mkdir(exist_ok=True)
    (files / "text").write_text("text on a disk\n")
    (files / "large").write_bytes(LARGE)
    path = folder / name
    with path.open("wb") as file:
        file.truncate(12 << 20)
    subprocess.run([TOOLS[0], "-q", "-t", "ext4", "-d", str(files), str(path)], check=True, capture_output=True)
    return path


@pytest.mark.long
@pytest.mark.skipif(not all(TOOLS), reason="needs e2fsprogs")
@pytest.mark.parametrize(
    "name", at_hand("linux-amd64", "linux-6.12-amd64", "linux-arm64", "linux-6.12-arm64", "linux-riscv64")
)
def test_linux_mounts_disks_and_writes_where_it_may(name: str, tmp_path: Path) -> None:
    only_read, copied, written = (disk(tmp_path, each) for each in ("read-only", "copied", "written"))
    before, initrd, console = only_read.read_bytes(), tmp_path / "initrd", tmp_path / "console"
    unwritten = copied.read_bytes()
    initrd.write_bytes(initial_file_system(name))
    options = ("-q", "--clock", "icount", "--memory", "256M", "--timeout", "100s", "--console", str(console))
    disks = ("--disk", f"{only_read},ro", "--disk", str(copied), "--disk", f"{written},rw", "--rng-seed", "7")

    result = CliRunner().invoke(run, [*options, *disks, "--initrd", str(initrd), str(real_image(name))])

    assert result.exit_code == 0, result.stderr
    text = console.read_text(errors="replace").replace("\r", "")
    shown = re.sub(r"(?m)^\[ *\d+\.\d+\] .*\n", "", text[text.index("read-onlycopied") :])
    digest = subprocess.run(["sha256sum"], input=LARGE, capture_output=True, check=True).stdout.decode()[:64]
    assert shown.startswith("read-onlycopiedwritten1\n0\n0\n")
    assert re.findall(r"([0-9a-f]{64})  (\S+)", shown) == [(digest, "/a/large"), (digest, "/b/copy")]
    assert "text on a disk\n0000000" in shown
    assert "done\n" in shown
    assert (only_read.read_bytes(), copied.read_bytes()) == (before, unwritten)
    copy = subprocess.run([TOOLS[1], "-R", "cat /copy", str(written)], capture_output=True, check=True).stdout
    assert copy == LARGE
