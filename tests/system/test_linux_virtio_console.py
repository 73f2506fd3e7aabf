"""Debian's kernels with Debian's modules: a shell on a virtio console, typed at beside the serial line."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, modules_of, real_image
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

# In the order in which they need each other; a kernel that has one of them built in has no such file.
MODULES = (
    *("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_mmio"),
    "virtio_console",
)
PROGRAMS = ("sh", "mount", "insmod", "tty", "poweroff", "setsid")
INIT = b"""
mount -t devtmpfs none /dev
exec setsid sh -c "exec sh -i </dev/hvc0 >/dev/hvc0 2>&1"
"""


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-arm64", "linux-riscv64", "linux-6.12-amd64"))
def test_a_shell_on_a_virtio_console(name: str, tmp_path: Path) -> None:
    modules = modules_of(name, "|".join(MODULES))
    busybox = real_image(f"busybox-{name.rpartition('-')[2]}").read_bytes()
    load = "".join(f"insmod /{module}.ko\n" for module in MODULES if module in modules)
    initrd, lines = tmp_path / "initrd", tmp_path / "lines"
    initrd.write_bytes(
        archive(
            [
                *(Entry(folder, DIRECTORY) for folder in ("bin", "dev")),
                Entry("dev/console", CHARACTERS, device=(5, 1)),
                *(Entry(f"{module}.ko", FILE, content) for module, content in modules.items()),
                Entry("bin/busybox", FILE, busybox),
                *(Entry(f"bin/{program}", LINK, b"busybox") for program in PROGRAMS),
                Entry("init", FILE, b"#!/bin/sh\n" + load.encode() + INIT),
            ]
        )
    )
    lines.write_text("tty\npoweroff -f\n")
    options = ("-q", "--clock", "icount", "--memory", "256M", "--timeout", "60s", "--initrd", str(initrd))
    typed = ("--virtio-console", "--input", str(lines), "--prompt", "# $")

    result = CliRunner().invoke(run, [*options, *typed, str(real_image(name))])

    assert result.exit_code == 0, result.stderr
    assert re.search(r"^/dev/hvc0\r?\n", result.stdout, re.MULTILINE)
