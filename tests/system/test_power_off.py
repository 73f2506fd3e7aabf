"""Linux for amd64, told to switch the machine off, does so by ACPI; the run ends as that of firmware does."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, real_image
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

INIT = b"#!/bin/sh\n/bin/poweroff -f\n"


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-6.12-amd64"))
def test_linux_switches_a_pc_off(name: str, tmp_path: Path) -> None:
    initrd, console = tmp_path / "initrd.cpio", tmp_path / "console"
    busybox = real_image("busybox-amd64").read_bytes()
    links = (Entry(f"bin/{applet}", LINK, b"busybox") for applet in ("sh", "poweroff"))
    folders = (Entry("bin", DIRECTORY), Entry("dev", DIRECTORY), Entry("dev/console", CHARACTERS, device=(5, 1)))
    initrd.write_bytes(archive([*folders, Entry("bin/busybox", FILE, busybox), *links, Entry("init", FILE, INIT)]))
    options = ("-v", "--clock", "icount", "--memory", "256M", "--timeout", "60s", "--console", str(console))

    result = CliRunner().invoke(run, [*options, "--initrd", str(initrd), str(real_image(name))])

    assert result.exit_code == 0, result.stderr
    assert result.stderr.endswith("ended: power-off\n")
    text = console.read_text(errors="replace")
    assert "reboot: Power down" in text
    assert "ACPI Error" not in text and "ACPI BIOS" not in text
