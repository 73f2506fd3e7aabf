"""Linux of three machines under QEMU: which task, which CPU, and who called, as in our own machine."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.commands.in_process import kinst_run
from tests.images import real_image
from tests.linux_programs import START, initial_file_system
from tests.runtime.live.qemus import needs

PROGRAMS = f"""{START}
md5sum /bin/busybox > /dev/null
head -c 65536 /dev/zero | gzip -c > /dev/null
echo done
poweroff -f
"""
QEMU = {
    "amd64": "qemu-system-x86_64 -M pc -cpu qemu64",
    "arm64": "qemu-system-aarch64 -M virt,gic-version=2 -cpu cortex-a57",
    "riscv64": "qemu-system-riscv64 -M virt",
}
CONSOLE = {"amd64": "ttyS0", "arm64": "ttyAMA0", "riscv64": "ttyS0"}
OURS = ("md5sum", "gzip", "head")  # kernel threads' names and numbers depend on the time


@pytest.fixture(params=QEMU)
def machine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    needs(QEMU[name].split()[0])
    return name


@pytest.fixture
def words(machine: str, tmp_path: Path) -> list[object]:
    """What boots it."""
    initrd = tmp_path / "initrd.cpio"
    initrd.write_bytes(initial_file_system(machine, PROGRAMS))
    append = f"console={CONSOLE[machine]} panic=-1 nokaslr"
    return ["--initrd", initrd, "--append", append, real_image(f"linux-{machine}")]


def counts(program: str, *words: object) -> Mapping[tuple[str, ...], int]:
    """The values of the only aggregation, of keys whose last part is one of our programs' names."""
    done = kinst_run("-q", "--format", "json", "-n", program, *words)
    assert done.returncode == 0, done.stderr
    assert " drops on " not in done.stderr
    document = json.loads(done.stdout)["dtrace"]
    assert any("done" in one.get("console", "") for one in document["probes"])
    found = Counter[tuple[str, ...]]()
    for one in document["aggregations"][0]["aggregation-data"]:
        found[tuple(map(json.dumps, one["keys"]))] += one["value"]
    return {key: value for key, value in found.items() if json.loads(key[-1]) in OURS}


def on(machine: str, *more: str) -> tuple[str, str]:
    return "--on", " ".join((QEMU[machine], "-m 256M", *more))


@pytest.mark.long
def test_a_task_and_its_caller_are_those_of_our_machine(machine: str, words: list[object]) -> None:
    program = "fbt::vfs_read:entry { @[caller, pid == tid, cpu, execname] = count(); }"
    there = counts(program, *on(machine, "-smp 1"), *words)
    assert sum(there.values()) > 30
    assert there == counts(program, "--memory", "256M", *words)


@pytest.mark.long
def test_a_stack_is_that_of_our_machine(machine: str, words: list[object]) -> None:
    program = "fbt::vfs_open:entry { @[stack(), execname] = count(); }"
    there = counts(program, *on(machine, "-smp 1"), *words)
    assert there == counts(program, "--memory", "256M", *words)


@pytest.mark.long
def test_variables_of_a_thread_are_its_own_on_several_cpus(machine: str, words: list[object]) -> None:
    """A task is not always on the same CPU, and another one comes in between."""
    program = """
        fbt::vfs_open:entry { self->opened = tid; }
        fbt::vfs_read:entry /self->opened/ { @[self->opened == tid, execname] = count(); }
    """
    there = counts(program, *on(machine, "-smp 2"), *words)
    assert {json.loads(same) for same, _ in there} == {1}
    assert sum(there.values()) > 30


@pytest.mark.long
def test_what_is_not_recorded_is_refused(tmp_path: Path) -> None:
    """Also where there is a system that has it."""
    needs("qemu-system-x86_64")
    image: Any = real_image("linux-amd64")
    done = kinst_run("-q", *on("amd64"), "-n", "fbt::vfs_read:entry { @[uid] = count(); }", image)
    assert done.returncode == 1
    assert done.stderr == (
        "kinst-run: fbt::vfs_read:entry: uid: is not recorded under QEMU: leave --on out: our own machine has it\n"
    )


@pytest.mark.long
def test_a_kernel_that_moves_away_from_its_room_says_so() -> None:
    """QEMU's device tree has no seed for it then, but this CPU has one."""
    needs("qemu-system-aarch64")
    image: Any = real_image("linux-arm64")
    there = ("--on", "qemu-system-aarch64 -M virt -cpu max -m 256M", "--append", "panic=-1")
    done = kinst_run("-q", *there, "-n", "fbt::vfs_read:entry { @ = count(); }", image)
    assert done.returncode == 1
    assert "(KASLR), away from the trampolines in front of it: add nokaslr to --append" in done.stderr
