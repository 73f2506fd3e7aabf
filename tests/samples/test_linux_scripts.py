"""samples/d/linux: each script says what it does, compiles for real kernels, and prints what these then did."""

import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, real_image
from tests.linux_scripts.checks import BY_PROBES
from tests.linux_scripts.guest import FUNCTION, KERNELS
from tests.linux_scripts.measures import BY_FUNCTION
from tests.linux_scripts.scripts import ALL, compared
from tests.samples.machines import SAMPLES
from tests.system.linux_runs import initrd_of, run_linux

FOLDER = SAMPLES / "d" / "linux"
SCRIPTS = sorted(FOLDER.glob("*.d"))
TOGETHER = [word for path in SCRIPTS if path.stem not in BY_FUNCTION for word in ("-s", str(path))]
# What samples/linux/init does is told by these.
OF_INIT = (
    *("block-io", "execsnoop", "failing-calls", "off-cpu-stacks", "opensnoop", "page-allocations", "page-faults"),
    *("profile-stacks", "read-sizes", "run-queue-latency", "slow-initcalls", "syscall-latency", "syscalls-by-program"),
    "vfs-read-time",
)
INIT = SAMPLES / "linux" / "init"
# What the kernel and samples/linux/init start, in this order.
STARTED = (
    "/bin/sh /init",
    "/bin/busybox --install -s /bin",
    "mount -t devtmpfs dev /dev",
    "mount -t proc proc /proc",
    "ls -l /bin",
    "grep -c busybox /tmp/applets",
    "sort -r /tmp/applets",
    "awk { sum += $5 } END { print sum }",
    "gzip /tmp/applets",
    "wc -c",
    "cat /proc/version",
    "sleep 0.1",
    "reboot -f",
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_is_a_script_that_says_what_it_does(path: Path) -> None:
    text = path.read_text()
    assert text.startswith(f"#!/usr/bin/env -S kinst-run -s\n/*\n * {path.stem}.d - ")
    assert f" * USAGE: kinst-run -s samples/d/linux/{path.name} VMLINUX" in text
    assert path.stat().st_mode & 0o111 == 0o111
    assert f"| `{path.name}` |" in (SAMPLES / "README.md").read_text()
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("name", at_hand("linux-amd64"))
def test_all_compile_for_a_real_kernel(name: str) -> None:
    result = CliRunner().invoke(run, ["-e", *TOGETHER, str(real_image(name))])
    assert result.exit_code == 0, result.stderr


def test_each_is_compared_with_the_guest() -> None:
    assert {path.stem for path in SCRIPTS} == ALL


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand(*KERNELS))
def test_each_compiles_alone(name: str) -> None:
    for path in SCRIPTS:
        words = [FUNCTION] if path.stem in BY_FUNCTION else []
        result = CliRunner().invoke(run, ["-e", "-s", str(path), str(real_image(name)), *words])
        assert result.exit_code == 0, result.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand(*KERNELS))
def test_each_agrees_with_the_guest(name: str, tmp_path: Path) -> None:
    figures = list(compared(name, tmp_path))
    assert ALL - {script for script, _ in figures} <= (BY_PROBES if name == "linux-riscv64" else frozenset())
    assert [one for one in figures if not one[1].agrees] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "name", at_hand("linux-amd64", "linux-arm64", "linux-riscv64", "linux-6.12-amd64", "linux-6.12-arm64")
)
def test_they_tell_of_a_real_run(name: str, tmp_path: Path) -> None:
    machine = name.rpartition("-")[2]
    initrd = initrd_of(machine, INIT, tmp_path)
    more = [word for one in OF_INIT for word in ("-s", str(FOLDER / f"{one}.d"))]
    text, _ = run_linux(name, initrd, users=[tmp_path / "busybox"], more=more)

    started = re.findall(r"^ +(\d+) +(\d+) ([\w.]+) +([/\w].*)$", text, re.MULTILINE)
    programs = [arguments for _, _, _, arguments in started]
    places = [STARTED.index(one) for one in programs]  # busybox runs some of its applets without execve()
    assert places == sorted(places)
    assert {*STARTED[:2], STARTED[3], "grep -c busybox /tmp/applets", "sleep 0.1", "reboot -f"} <= set(programs)
    assert _number(text, r"^(\d+) programs were started$") == len(programs)
    assert re.search(r"^ *\d+ ls +3 +0 /bin$", text, re.MULTILINE)
    assert re.search(r"^ *\d+ ls +-1 +2 /etc/passwd$", text, re.MULTILINE)

    calls = Counter[tuple[str, str]]()
    for program, call, count in re.findall(r"^(\S+) +([a-z]\w+) +(\d+)$", text, re.MULTILINE):
        calls[program, call] += int(count)
    assert sum(calls.values()) == _number(text, r"^(\d+) system calls in all$")
    assert calls["ls", "getdents64"] >= 2
    returned = re.findall(r"^(\S+) +(\w+) +(\d+) +(\d+) +(\d+)$", text, re.MULTILINE)
    latencies = {(program, call): int(count) for program, call, count, _, longest in returned if int(longest) >= 0}
    assert latencies["ls", "getdents64"] == calls["ls", "getdents64"]
    assert re.search(r"^ls +openat +2 +\d+$", text, re.MULTILINE)  # ENOENT

    faults = re.findall(r"^(\S+) +(busybox`\w+|0x[0-9a-f]+) +(\d+)$", text, re.MULTILINE)
    assert sum(int(count) for *_, count in faults) == _number(text, r"^(\d+) page faults in all$") > 300
    assert sum(int(count) for _, where, count in faults if where.startswith("busybox`")) > 300
    assert _number(text, r"^(\d+) pages in all$") > 3000
    assert _number(text, r"^(\d+) initcalls took \d+ us$") > 300
    assert _number(text, r"^ *(\d+) us  \S+`load_system_certificate_list$") > 1000
    for heading in ("grep (ns)", "sort (ns)", "grep\n", "sort\n"):
        assert f"\n{heading}" in text
    assert re.search(r"`schedule\+0x\w+$", text, re.MULTILINE)  # where tasks wait
    assert re.search(r"^busybox`\w+(\+0x\w+)?\nbusybox`", text, re.MULTILINE)  # user mode's stacks
    assert not re.search(r"`(asm_)?common_interrupt\+0x\w+\n +\d+$", text, re.MULTILINE)  # a stack that ends too soon


def _number(text: str, pattern: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, pattern
    return int(found[1])
