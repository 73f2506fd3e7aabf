"""A Debian kernel, booted once to a shell and kept as a snapshot, from which the workload is run under scripts.

What the guest says of itself (`/proc`, its own tracing) is read by the workload. Where both must have seen exactly
the same, two probes of ours at the reading print how far the scripts' aggregations had come (`READINGS`).
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.images import modules_of, real_image
from tests.linux_scripts.told import Boot, Run
from tests.system.test_linux_disks import MODULES
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

SCRIPTS: Final = Path("samples/d/linux")
KERNELS: Final = ("linux-amd64", "linux-arm64", "linux-riscv64")
BOOT_SCRIPT: Final = "slow-initcalls"
# What these need as their $1 is a name; all others have a number, or none.
BY_FUNCTION: Final = ("funccount", "funclatency")
FUNCTION: Final = "vfs_read"
_LONGEST_WRITE: Final = "128k"
# To print the trace would take the guest a minute: it is taken where it writes it to /dev/null.
_READ_TRACE: Final = 'syscall::write:entry /execname == "dd"/ { printf("%s", copyinstr(arg1, arg2)); }'
_ENOUGH: Final = "1000"  # rows of a table, or us
_WORK: Final = Path(__file__).with_name("work")
_FOLDERS: Final = ("bin", "sbin", "usr", "usr/bin", "usr/sbin", "dev", "etc", "mnt", "proc", "sys", "tmp")
_INIT: Final = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs trace /sys/kernel/tracing
{modules}
ifconfig lo 127.0.0.1
exec sh -i
"""
_CONSOLES: Final = {"amd64": "ttyS0", "arm64": "ttyAMA0", "riscv64": "ttyS0"}
_DISK_SIZE: Final = 4 << 20
_PROMPT: Final = "# $"
# Two readings each: what the script had counted when the kernel began to say its figure.
READINGS: Final = r"""
fbt::show_stat:entry
{
    printf("<stat\n");
    printa("tasks %@d\n", @tasks_made);
    printa("softirqs %s %@d\n", @softirqs);
    printa("irqs %d %s %@d\n", @irqs);
    printa("user %@d\n", @in_user);
    printf(">\n");
}
fbt::vmstat_start:entry
{
    printf("<vmstat\n");
    printa("faults %@d\n", @all_faults);
    printa("pages %@d\n", @all_pages);
    printf(">\n");
}
fbt::show_schedstat:entry
{
    printf("<schedstat\n");
    printa("turns %@d\n", @turns);
    printa("on_cpu %@d\n", @on_cpu_ns);
    printa("waits %@d\n", @run_queue_ns);
    printa("CPU %d (tasks)%@d\n", @run_queue_length);
    printf(">\n");
}
fbt::shmem_statfs:entry { printf("<statfs\n"); printa("objects %A %@d\n", @objects); printf(">\n"); }
fbt::rb_simple_write:entry
{
    printf("<tracing\n");
    printa("softirqs %s %@d\n", @softirqs);
    printa("irqs %d %s %@d\n", @irqs);
    printa("timers %@d\n", @expired);
    printa("calls %@d\n", @every_call);
    printa("works %A %@d\n", @works);
    printa("wakeups %@d\n", @all_wakeups);
    printa("locks %s %@d\n", @locks);
    printa("cache %s %@d\n", @taken);
    printa("capabilities %@d\n", @all_caps);
    printa("lookups %@d\n", @all_lookups);
    printa("vfs %s %@d\n", @vfs_calls);
    printa("shrunk %@d\n", @all_shrunk);
    printf("added %d\n", all_added + added);
    printf(">\n");
}
"""
FUNCTION_READINGS: Final = r"""
fbt::rb_simple_write:entry
{
    printf("<tracing\n");
    printa("called %s %@d\n", @called);
    printa("left %s %@d\n", @left);
    printf(">\n");
}
"""


@dataclass(frozen=True, slots=True)
class Guest:
    """A kernel and the folder with its initial file system, disk and snapshot."""

    name: str
    folder: Path

    def boot(self) -> Boot:
        """Boot to the shell's prompt, with the script that watches that, and keep the guest there."""
        machine = self.name.rpartition("-")[2]
        self._path("initrd").write_bytes(_initial_file_system(self.name, machine))
        self._path("disk").write_bytes(bytes(_DISK_SIZE))
        self._path("lines").write_text("sh /work\n")
        line = f"console={_CONSOLES[machine]} initcall_debug loglevel=8"
        words = ("--initrd", str(self._path("initrd")), "--memory", "256M", "--append", line, "--clock", "icount")
        keep = ("--until", _PROMPT, "--snapshot-at", f"END={self._path('snap')}")
        return Boot(*self._run(*words, *keep, "-s", str(SCRIPTS / f"{BOOT_SCRIPT}.d")))

    def plain(self) -> tuple[str, str]:
        """The console of the workload alone, and what the guest's own tracing has seen. The machine's clock counts
        instructions: both are the same under scripts."""
        trace, console = self._run(*self._typing("^=done"), "-x", f"strsize={_LONGEST_WRITE}", "-n", _READ_TRACE)
        return console, trace

    def run(self, scripts: Sequence[str], plain: tuple[str, str], *, of_functions: bool = False) -> Run:
        """The workload under some scripts, up to where it tells what it has found, which is known."""
        words = [word for name in scripts for word in ("-s", str(SCRIPTS / f"{name}.d"))]
        argument, readings = (FUNCTION, FUNCTION_READINGS) if of_functions else (_ENOUGH, READINGS)
        text, seen = self._run(*self._typing("^=events"), *words, "-n", readings, argument=argument)
        if not plain[0].startswith(seen):
            shown = zip(plain[0].splitlines(), seen.splitlines(), strict=False)
            other = next((f"{line!r}, not {own!r}" for own, line in shown if own != line), "more than without")
            raise RuntimeError(f"{self.name}: the guest prints something else when scripts run: {other}")
        return Run(text, *plain)

    def _typing(self, until: str) -> tuple[str, ...]:
        start = ("--from", str(self._path("snap")), "--input", str(self._path("lines")))
        return (*start, "--prompt", _PROMPT, "--until", until)

    def _run(self, *words: str, argument: str = "") -> tuple[str, str]:
        image, disk, console = real_image(self.name), self._path("disk"), self._path("console")
        command = ["kinst-run", "-q", str(image), *filter(None, (argument,))]
        command += ["--disk", str(disk), "--console", str(console), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or done.stderr:
            raise RuntimeError(f"{self.name}: exit code {done.returncode}: {done.stderr}")
        return done.stdout, console.read_text(errors="replace").replace("\r", "")

    def _path(self, name: str) -> Path:
        return self.folder / f"{self.name}.{name}"


def _initial_file_system(name: str, machine: str) -> bytes:
    modules = modules_of(name, "|".join(MODULES))
    load = "\n".join(f"insmod /{one}.ko" for one in MODULES if one in modules)
    return archive(
        [
            *(Entry(one, DIRECTORY) for one in _FOLDERS),
            Entry("dev/console", CHARACTERS, device=(5, 1)),
            *(Entry(f"{one}.ko", FILE, content) for one, content in modules.items()),
            Entry("bin/busybox", FILE, real_image(f"busybox-{machine}").read_bytes()),
            Entry("bin/sh", LINK, b"busybox"),
            Entry("init", FILE, _INIT.format(modules=load).encode()),
            Entry("work", FILE, _WORK.read_bytes()),
        ]
    )
