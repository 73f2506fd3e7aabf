"""Debian's kernels with Debian's busybox in an initial file system: traced into user space, task by task."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.gated import long_after_first
from tests.images import at_hand, real_image
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

# Each program is started once. The shell is `init`, and so is what it forks until that becomes another program.
INIT = b"""#!/bin/sh
/bin/mount -t proc proc /proc
/bin/uname -m
/bin/cat /proc/self/comm /proc/self/status > /tmp/status
/bin/grep -c . /tmp/status
/bin/cut -d' ' -f1 /missing
echo done
/bin/reboot -f
"""
PROGRAM = """
syscall::execve:entry { printf("exec %s %s\\n", execname, copyinstr(arg0)); }
syscall::openat:entry { self->path = copyinstr(arg1); self->tid = tid; }
syscall::openat:return /self->path != NULL/
{
    printf("open %s %s %d %d\\n", execname, self->path, (int)arg1, self->tid == tid);
    self->path = NULL;
}
syscall::reboot:entry { printf("last %s %d %d %d\\n", execname, pid == tid, ppid, uid); }
syscall:::entry, syscall:::return { @[probename, execname] = count(); }
END { printa("%s %s %@d\\n", @); }
"""
APPLETS = ("mount", "uname", "cat", "grep", "cut", "reboot")


def initial_file_system(machine: str) -> bytes:
    busybox = real_image(f"busybox-{machine}").read_bytes()
    folders = (Entry(name, DIRECTORY) for name in ("bin", "dev", "proc", "tmp"))
    devices = (Entry("dev/console", CHARACTERS, device=(5, 1)), Entry("dev/null", CHARACTERS, device=(1, 3)))
    links = (Entry(f"bin/{name}", LINK, b"busybox") for name in ("sh", *APPLETS))
    return archive([*folders, *devices, Entry("bin/busybox", FILE, busybox), *links, Entry("init", FILE, INIT)])


@pytest.mark.parametrize("name", long_after_first(at_hand("linux-amd64", "linux-arm64", "linux-riscv64")))
def test_linux_is_traced_into_user_space(name: str, tmp_path: Path) -> None:
    machine, initrd, console = name.removeprefix("linux-"), tmp_path / "initrd.cpio", tmp_path / "console"
    initrd.write_bytes(initial_file_system(machine))
    options = ("-q", "--clock", "icount", "--memory", "256M", "--timeout", "60s", "--console", str(console))

    result = CliRunner().invoke(run, [*options, "--initrd", str(initrd), "-n", PROGRAM, str(real_image(name))])

    assert result.exit_code == 0, result.stderr
    assert re.search(r"^done\r?$", console.read_text(errors="replace"), re.MULTILINE)
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("exec")] == [f"exec init /bin/{one}" for one in APPLETS]
    opened = {tuple(line.split()[1:3]): line.split()[3:] for line in lines if line.startswith("open")}
    assert opened["cat", "/proc/self/comm"] == ["3", "1"]
    assert opened["cut", "/missing"] == ["-2", "1"]  # ENOENT
    assert re.search(r"^last reboot 1 1 0$", result.stdout, re.MULTILINE)
    rows = re.findall(r"^(entry|return) (\w+) (\d+)$", result.stdout, re.MULTILINE)
    counts = {(end, program): int(count) for end, program, count in rows}
    for applet in APPLETS[:-1]:
        # It does not return from exit_group; and it returns from the execve that made it what it is.
        assert counts["entry", applet] == counts["return", applet] > 5


def test_what_is_no_linux_is_given_no_initial_file_system(tmp_path: Path) -> None:
    initrd = tmp_path / "initrd.cpio"
    initrd.write_bytes(archive([]))
    result = CliRunner().invoke(run, ["--initrd", str(initrd), "-n", "BEGIN", "samples/kernel-amd64.elf"])
    assert result.exit_code == 1
    assert "kernel-amd64.elf: --initrd: it is no Linux kernel" in result.stderr
