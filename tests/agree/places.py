"""The name of an image -> the file, and what its runs have on the command line."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.images import CACHE, real_image
from tests.linux_programs import initial_file_system
from tests.system.cases import BY_NAME, SAMPLES

FIRMWARE: Final = ("opensbi-1.1", "opensbi-1.6")
SMALL: Final = (*(case.image for case in SAMPLES), *FIRMWARE)
LINUX: Final = ("linux-amd64", "linux-arm64", "linux-riscv64")
NAMES: Final = (*SMALL, *LINUX)
FOLDER: Final = CACHE.parent / "agree"
_BOUND: Final = "60s"  # of the machine's time; every image ends long before
MARKER: Final = "kinst: user space"
# Some of everything that has tracepoints: programs that start, fail, wait for each other and for the time.
_INIT: Final = f"""#!/bin/sh
/bin/busybox mount -t proc proc /proc
echo '{MARKER}'
/bin/busybox ls / | /bin/busybox sort -r
i=0; while [ $i -lt 4 ]; do i=$((i + 1)); (/bin/busybox true) & done; wait
echo hello > /tmp/file; /bin/busybox cat /tmp/file /missing /proc/self/stat | /bin/busybox wc -l
/bin/busybox sleep 0.02; /bin/busybox dd if=/dev/zero bs=512 count=8 2> /dev/null | /bin/busybox md5sum
/bin/busybox poweroff -f
"""
# Self tests of ciphers and tables for tracers are two thirds of a boot, and tell nothing that the rest does not.
_QUICK: Final = (
    "quiet cryptomgr.notests initcall_blacklist=crypto_algapi_init,load_system_certificate_list,"
    "init_blk_tracer,btf_vmlinux_init,init_kprobe_trace,cubictcp_register"
)
# Without the time stamp counter, which is the host's, the kernel for amd64 does the same in every run.
APPEND: Final = {
    "amd64": f"console=ttyS0 pci=off clearcpuid=tsc,tsc_deadline_timer {_QUICK}",
    "arm64": f"console=ttyAMA0 {_QUICK}",
    "riscv64": f"console=ttyS0 {_QUICK}",
}


@dataclass(frozen=True, slots=True)
class Place:
    """An image and its machine. `until` is a pattern of the line with which a run ends, None if the guest ends it."""

    path: Path
    words: tuple[str, ...] = ()
    until: str | None = None

    def ends(self, given: frozenset[str]) -> list[str]:
        """Words that let a run end which has these options."""
        until = [] if self.until is None or given & {"--until", "--call"} else ["--until", self.until]
        return until if "--timeout" in given else [*until, "--timeout", _BOUND]


@cache
def place(name: str) -> Place:
    """Where to run the image of this name; it is downloaded if it is not there."""
    if name not in LINUX:
        case = BY_NAME[name]
        return Place(case.path, (), case.until)
    machine = name.removeprefix("linux-")
    return Place(real_image(name), ("--memory", "256M", "--append", APPEND[machine], "--initrd", str(initrd(machine))))


def initrd(machine: str) -> Path:
    """The initial file system of a machine's Linux."""
    path, content = FOLDER / f"{machine}.cpio", initial_file_system(machine, _INIT)
    if not path.exists() or path.read_bytes() != content:
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path
