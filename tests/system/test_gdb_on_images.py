"""gdb itself in Linux and in U-Boot, with probes that fire meanwhile, from the first instruction to the end."""

import re
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.images import real_image
from tests.runtime.debugger.client import needs_gdb, with_gdb

_PANIC = "Kernel panic - not syncing: VFS: Unable to mount root fs"
# Without the time stamp counter, which is the host's, the kernel for amd64 does the same in every run.
_APPEND = {
    "amd64": "console=ttyS0 noapic nolapic acpi=off pci=off panic=-1 clearcpuid=tsc,tsc_deadline_timer",
    "arm64": "panic=-1",
}
_PROGRAM = 'fbt::vfs_*:entry { @[probefunc] = count(); } END { printf("at %d", timestamp); }'
_LINUX = (
    "hbreak start_kernel",
    "continue",
    "backtrace 1",
    "stepi",
    "next",
    "delete",
    "watch jiffies_64",
    "continue",
    "backtrace 4",
    "delete",
    "tbreak vfs_open",
    "continue",
    "backtrace 3",
    "detach",
)


@pytest.mark.long
@needs_gdb
@pytest.mark.parametrize("machine", _APPEND)
def test_linux(machine: str, tmp_path: Path) -> None:
    image = real_image(f"linux-{machine}")
    words = ("--clock", "icount", "--append", _APPEND[machine], "--until", _PANIC, "-n", _PROGRAM)
    said, done = with_gdb(image, tmp_path, _LINUX, *words, seconds=1800)
    assert re.search(r"Breakpoint 1(\.\d)?, .*start_kernel \(\)", said), said
    assert re.search(r"watchpoint 2: jiffies_64\n\nOld value = (\d+)\nNew value = \d+", said), said
    assert re.search(r"#[12] .*tick_periodic ", said), said
    assert re.search(r"breakpoint 3(\.\d)?, .*vfs_open ", said), said
    assert re.search(r"#1 .*do_open", said), said
    plain = kinst_run(image, *words)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


# Without symbols: places are taken from where it is.
_U_BOOT = (
    "stepi 300",
    "set $place = $pc",
    "hbreak *$place",
    "info registers satp mstatus",
    "watch *(unsigned long *)($sp - 8)",
    "continue",
    "continue",
    "delete",
    "stepi",
    "x/2i $pc",
    "detach",
)


@pytest.mark.long
@needs_gdb
def test_u_boot(tmp_path: Path) -> None:
    image = real_image("u-boot-riscv64")
    program = 'tick-10ms { @ = count(); } END { printf("at %d", timestamp); }'
    words = ("--clock", "icount", "--until", "Hit any key", "-n", program)
    said, done = with_gdb(image, tmp_path, _U_BOOT, *words, seconds=600)
    assert re.search(r"^satp +0x0", said, re.MULTILINE), said
    assert re.search(r"atchpoint 2: .*\n\nOld value = \d+\nNew value = \d+", said), said
    plain = kinst_run(image, *words)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


# Forward by writes of a word of the stack, and back by as many; then from where U-Boot copies itself (this word is the
# first that changes there) to the last write of another, and to the beginning.
_U_BOOT_BACKWARDS = (
    "stepi 300",
    "watch -l *(unsigned long *)($sp - 8)",
    *(["continue"] * 6),
    *(["reverse-continue"] * 5),
    "delete",
    "watch *(unsigned long *)0x86ee8d20",
    "continue",
    "delete",
    "watch -l *(unsigned long *)($sp - 8)",
    "reverse-continue",
    "reverse-stepi",
    "stepi",
    "delete",
    "reverse-continue",
    "detach",
)


@pytest.mark.long
@needs_gdb
def test_backwards_in_u_boot(tmp_path: Path) -> None:
    image = real_image("u-boot-riscv64")
    words = ("--clock", "icount", "--until", "Hit any key")
    said, done = with_gdb(image, tmp_path, _U_BOOT_BACKWARDS, *words, seconds=600)
    found = [(int(old), int(new)) for old, new in re.findall(r"Old value = (\d+)\nNew value = (\d+)", said)]
    forward, back, (copied, last) = found[:6], found[6:11], found[11:]
    assert back == [(new, old) for old, new in reversed(forward[1:])], said
    assert copied[0] == 0 and last, said
    assert "No more reverse-execution history" in said, said
    plain = kinst_run(image, *words)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


_BACKWARDS = (
    "hbreak mount_root",
    "continue",
    "delete",
    "watch *(long *)&jiffies_64",
    "reverse-continue",
    "reverse-continue",
    "stepi 3",
    "delete",
    "reverse-stepi",
    "hbreak start_kernel",
    "reverse-continue",
    "detach",
)


@pytest.mark.long
@needs_gdb
@pytest.mark.parametrize("machine", _APPEND)
def test_backwards_in_linux(machine: str, tmp_path: Path) -> None:
    """From where it would mount its root to the last ticks, and to where it began; and the whole way again."""
    image = real_image(f"linux-{machine}")
    words = ("--clock", "icount", "--append", _APPEND[machine], "--until", _PANIC)
    said, done = with_gdb(image, tmp_path, _BACKWARDS, *words, seconds=1800)
    found = re.findall(r"watchpoint 2: .*\n\nOld value = (\d+)\nNew value = (\d+)", said)
    assert [int(old) - int(new) for old, new in found] == [1, 1, -1], said
    assert re.search(r"Breakpoint 3(\.\d)?, .*start_kernel \(\)", said), said
    plain = kinst_run(image, *words)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
