"""Debian's Linux for amd64 on two CPUs: beside QEMU, with interrupts through the I/O APIC, and with probes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.images import at_hand, real_image
from tests.system.linux_runs import initrd_of, run_linux

QEMU = "qemu-system-x86_64"
MARKER = "kinst: user space"
# The processor that a task is on is field 39 of its stat. What is bound to CPU 1 starts on either.
INIT = f"""#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t devtmpfs none /dev
echo '{MARKER}'
grep -c ^processor /proc/cpuinfo
grep -E '^(siblings|cpu cores|core id)' /proc/cpuinfo
taskset 1 cut -d' ' -f39 /proc/self/stat
taskset 2 awk '{{ print $39 }}' /proc/self/stat
i=0; while [ $i -lt 10 ]; do i=$((i + 1)); (echo $i | gzip | gunzip > /tmp/$i) & done; wait
cat /tmp/* | sort -n | tr '\\n' ' '
grep -E '(timer|ttyS0|rtc0|i8042)$' /proc/interrupts | sed 's/.*IO-APIC/IO-APIC/'
poweroff -f
"""
APPEND = "console=ttyS0 pci=off panic=-1"
OPTIONS = ("--cpus", "2", "--append", APPEND)
# A number is an address, a time, a size or a speed: what is alike is what the kernel does.
NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
# Lines about what the two PCs do not share, by their beginning: firmware and its tables, PCI, the clocks that QEMU
# adds, AVX, which Unicorn has not, and the host's time, which QEMU's kernel notices.
BOARD = re.compile(
    r"(BIOS-e820|SMBIOS|DMI|ACPI|acpi|last_pfn|RAMDISK|On node|APIC calibration|APIC delta|x86/PAT|CPU MTRRs|mtrr"
    r"|Disabled|tsc|TSC|Measured|clocksource|sched_clock|Unstable|If you want|  \"trace|on the kernel|hpet|random"
    r"|hrtimer|PCI|pci|pnp|rtc_cmos|platform rtc|00:|serial8250: ttyS|i8042: PNP|i8042: Probing|SRBDS|x86/fpu"
    r"|reboot:|$)"
)


def initrd(folder: Path) -> Path:
    init = folder / "init"
    init.write_text(INIT)
    return initrd_of("amd64", init, folder)


def normalised(console: str) -> tuple[set[str], list[str]]:
    """The kernel's lines up to user space, without numbers, and what user space prints."""
    text = re.sub(r"(?m)^\[ *\d+\.\d+\] ", "", console.replace("\r", ""))
    kernel, _, user = text[text.index("Linux version") :].partition(MARKER)
    lines, printed = ([one for one in part.splitlines() if not BOARD.match(one)] for part in (kernel, user))
    return {NUMBER.sub("#", line.strip()) for line in lines}, printed


def under_qemu(path: Path) -> str:
    machine = ("-M", "pc", "-cpu", "Haswell", "-accel", "tcg,thread=single", "-smp", "2", "-m", "256M")
    words = ("-nographic", "-no-reboot", "-kernel", str(real_image("linux-amd64")), "-initrd", str(path))
    command = (QEMU, *machine, *words, "-append", APPEND)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=True)
    return done.stdout.decode(errors="replace")


@pytest.mark.long
@pytest.mark.skipif(not at_hand("linux-amd64"), reason="linux-amd64 was not downloaded")
def test_linux_on_two_cpus_prints_what_it_prints_under_qemu(tmp_path: Path) -> None:
    if shutil.which(QEMU) is None:
        pytest.skip("needs QEMU")
    path = initrd(tmp_path)
    kernel, user = normalised(run_linux("linux-amd64", path, more=OPTIONS)[1])
    theirs = normalised(under_qemu(path))
    assert (kernel ^ theirs[0], user) == (set(), theirs[1])
    assert "smp: Brought up # node, # CPUs" in kernel
    assert user[0] == "2"
    assert user[-5:] == [
        "1 2 3 4 5 6 7 8 9 10 IO-APIC   2-edge      timer",
        "IO-APIC   1-edge      i8042",
        "IO-APIC   4-edge      ttyS0",
        "IO-APIC   8-edge      rtc0",
        "IO-APIC  12-edge      i8042",
    ]


# What a task has on one CPU it does not find on the other, and one CPU runs what is bound to it.
PROGRAM = """
fbt::vfs_*:entry, fbt::sched_*:entry, fbt::do_*:entry { @entered[cpu] = count(); }
sched:::on-cpu { self->cpu = cpu; self->is_on = 1; }
sched:::off-cpu /self->is_on/ { @left[self->cpu == cpu ? "where it came" : "elsewhere"] = count(); self->is_on = 0; }
syscall::write:entry /execname == "cut" || execname == "awk"/ { @wrote[execname, cpu] = count(); }
END { printa("entered %d %@d\\n", @entered); printa("left %s %@d\\n", @left); printa("wrote %s %d %@d\\n", @wrote); }
"""


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-6.12-amd64"))
def test_probes_on_two_cpus_change_nothing_and_are_the_same_twice(name: str, tmp_path: Path) -> None:
    path = initrd(tmp_path)
    _, plain = run_linux(name, path, more=OPTIONS)
    first, console = run_linux(name, path, [PROGRAM], more=OPTIONS)
    assert (first, console) == run_linux(name, path, [PROGRAM], more=OPTIONS)
    assert sorted(console.splitlines()) == sorted(plain.splitlines())
    assert "reboot: Power down" in console
    counts = {
        row[0]: int(row[1]) for row in re.findall(r"^(entered \d|left .*|wrote \w+ \d) (\d+)$", first, re.MULTILINE)
    }
    assert counts["entered 0"] > 1000 < counts["entered 1"]
    assert counts["left where it came"] > 100
    assert set(counts) == {"entered 0", "entered 1", "left where it came", "wrote cut 0", "wrote awk 1"}
