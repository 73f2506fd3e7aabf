"""Debian's kernels load a module of theirs in which functions and instructions are probed, use it and unload it."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from tests.images import at_hand, modules_of, real_image
from tests.system.linux_runs import run_linux
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

INIT = b"""#!/bin/sh
/bin/mount -t proc proc /proc
/bin/insmod /brd.ko rd_nr=1 rd_size=64
/bin/mknod /dev/ram0 b 1 0
echo written | /bin/dd of=/dev/ram0 bs=4096 count=4 conv=sync
/bin/dd if=/dev/ram0 bs=8 count=1
/bin/rmmod brd
/bin/reboot -f
"""
PROGRAM = """
kinst:brd:brd_init: /!instructions++/ { printf("%s\\n", execname); }
fbt:brd:brd_submit_bio:entry { submitted++; }
END { printf("instructions %d\\nsubmitted %d\\n", instructions > 10, submitted > 1); }
"""


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-arm64", "linux-riscv64"))
def test_a_patched_module_is_loaded_used_and_unloaded(name: str, tmp_path: Path) -> None:
    consoles = []
    module, patched = tmp_path / "brd.ko", tmp_path / "brd.kinst.ko"
    module.write_bytes(modules_of(name, "brd")["brd"])
    words = [str(module), "-p", "fbt:::", "-p", "kinst::brd_init:", "-o", str(patched)]
    assert CliRunner().invoke(rewrite, words).exit_code == 0
    for file, programs, more in ((module, [], []), (patched, [PROGRAM], ["--module", f"brd={patched}"])):
        initrd = tmp_path / "initrd"
        initrd.write_bytes(_file_system(name.rpartition("-")[2], file.read_bytes()))
        text, console = run_linux(name, initrd, programs, more=more)
        consoles.append(console[console.index("Run /init") :])
    plain, traced = (re.sub(r"brd: module verification failed.*\n", "", one) for one in consoles)
    assert "\nwritten\n" in plain and traced == plain
    assert text.split() == ["insmod", "instructions", "1", "submitted", "1"]


def _file_system(machine: str, module: bytes) -> bytes:
    busybox = Entry("bin/busybox", FILE, real_image(f"busybox-{machine}").read_bytes())
    links = (
        Entry(f"bin/{one}", LINK, b"busybox") for one in ("sh", "mount", "insmod", "rmmod", "mknod", "dd", "reboot")
    )
    folders = (Entry(one, DIRECTORY) for one in ("bin", "dev", "proc"))
    console = Entry("dev/console", CHARACTERS, device=(5, 1))
    return archive([*folders, console, busybox, *links, Entry("brd.ko", FILE, module), Entry("init", FILE, INIT)])
