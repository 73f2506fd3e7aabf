"""What the boots of Linux run in user space, twenty of busybox's programs, and how QEMU boots the same.

Without its own first and last lines the script needs `/bin/busybox`, `/proc` and `/dev/zero`.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_image
from tests.images import real_image
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

MARKER: Final = "kinst: user space"
START: Final = f"""#!/bin/sh
echo '{MARKER}'
/bin/busybox --install -s /bin
mount -t proc proc /proc
"""
PROGRAMS: Final = """uname -sm
ls / | sort -r | tr '\\n' ' '; echo
seq 1 200 | awk '{ sum += $1 } END { print "sum", sum }'
head -c 65536 /dev/zero | gzip -c | gunzip -c | md5sum
i=0; while [ $i -lt 20 ]; do i=$((i + 1)); (true) & done; wait; echo forked $i
echo hello > /tmp/file; cat /tmp/file; sed s/hello/goodbye/ /tmp/file
cp /tmp/file /tmp/copy; cmp /tmp/file /tmp/copy && wc -c < /tmp/copy; rm /tmp/copy
find /bin -name 'ls*' | xargs -n 1 basename | sort
printf '%s\\n' b a c | sort | uniq -c | cut -c 7-
expr 6 '*' 7; dd if=/dev/zero bs=1024 count=64 2> /dev/null | wc -c
echo YWJj | base64 -d; echo; date -u -d @0 +%Y; factor 1001
sleep 1; grep -c processor /proc/cpuinfo; test -d /proc/self && echo end
"""
_QEMU: Final = {
    "amd64": ("qemu-system-x86_64", "-M", "pc", "-cpu", "qemu64"),
    "arm64": ("qemu-system-aarch64", "-M", "virt,gic-version=2", "-cpu", "cortex-a57"),
    "riscv64": ("qemu-system-riscv64", "-M", "virt"),
}
_CHANGING: Final = r"(?m)^\[ *\d+\.\d+\] |audit\([\d.]+:\d+\)|setting system clock to .*|sched_clock: .*"


def initial_file_system(machine: str, init: str, more: Sequence[Entry] = ()) -> bytes:
    """busybox under its own name and `sh`, some folders and devices, and the script that runs first."""
    busybox = real_image(f"busybox-{machine}").read_bytes()
    folders = (Entry(name, DIRECTORY) for name in ("bin", "dev", "proc", "tmp"))
    numbers = {"console": (5, 1), "null": (1, 3), "zero": (1, 5)}
    devices = (Entry(f"dev/{name}", CHARACTERS, device=number) for name, number in numbers.items())
    programs = (Entry("bin/busybox", FILE, busybox), Entry("bin/sh", LINK, b"busybox"))
    return archive([*folders, *devices, *programs, Entry("init", FILE, init.encode()), *more])


def qemu(machine: str, kernel: Path, folder: Path, *words: str) -> list[str]:
    """QEMU's command line for a kernel. It takes only amd64's as an ELF file: of others `folder` gets an Image."""
    if machine != "amd64":
        kernel = flat(kernel, folder / "Image")
    return [*_QEMU[machine], "-m", "256M", "-nographic", "-no-reboot", "-kernel", str(kernel), *words]


def qemu_program(machine: str) -> str:
    """The name of QEMU's program."""
    return _QEMU[machine][0]


def qemu_board(machine: str) -> tuple[str, ...]:
    """QEMU's program, and the board that Linux boots on."""
    return _QEMU[machine]


def flat(path: Path, into: Path) -> Path:
    """An ELF kernel as boot loaders have it: memory from its first byte on."""
    image = open_image(path)
    segments = [one for one in image.segments if one.kind == PT_LOAD and one.file_size]
    first = min(one.load_address for one in segments)
    with into.open("wb") as file:
        for segment in segments:
            file.seek(segment.load_address - first)
            file.write(image.data[segment.offset : segment.offset + segment.file_size].data)
    return into


def lines_of(console: bytes) -> tuple[str, ...]:
    """A console without times."""
    return tuple(re.sub(_CHANGING, "", console.decode(errors="replace").replace("\r", "")).splitlines())


def from_marker(console: Sequence[str]) -> tuple[str, ...]:
    """The lines from user space's first on; none if it was not reached."""
    return tuple(console[console.index(MARKER) :]) if MARKER in console else ()


def of_programs(console: Sequence[str]) -> tuple[str, ...]:
    """The lines of user space, which are in the same order everywhere; the kernel's may come between."""
    return tuple(line for line in from_marker(console) if not re.match(r"\w+: |.*reboot:", line))
