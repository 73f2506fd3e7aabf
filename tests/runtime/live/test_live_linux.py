"""Linux of three machines under QEMU: which task, which CPU, and who called, as in our own machine."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kinst.targets.image import open_image
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
@pytest.mark.parametrize("cpus", [1, 4])
def test_system_calls_are_those_of_our_machine(machine: str, words: list[object], cpus: int) -> None:
    """With what they get and return, where the time makes no difference."""
    program = """
        syscall::write:entry, syscall::openat:entry { @[probefunc, probename, arg2, execname] = count(); }
        syscall::write:return, syscall::openat:return {
            @[probefunc, probename, (arg1 << 16) + errno, execname] = count();
        }
    """
    there = counts(program, *on(machine, f"-smp {cpus}"), *words)
    assert {json.loads(key[1]) for key in there} == {"entry", "return"}
    assert there == counts(program, "--memory", "256M", *words)


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
@pytest.mark.parametrize(("image", "cpu"), [("linux-arm64", "cortex-a57"), ("linux-6.12-arm64", "max")])
def test_a_kernel_that_moves_has_its_room_and_its_names(image: str, cpu: str, tmp_path: Path) -> None:
    """By the seed of QEMU's device tree, or by the CPU's own. The kernel says itself how far, when it panics."""
    needs("qemu-system-aarch64")
    console = tmp_path / "console"
    there = ("--on", f"qemu-system-aarch64 -M virt -cpu {cpu} -m 512M", "--append", "console=ttyAMA0 panic=-1")
    program = "fbt::vfs_open:entry { @[stack(3)] = count(); }"
    words = ("-qv", "--console", console, "--until", "Kernel Offset", *there, "-n", program, real_image(image))
    done = kinst_run(*words)
    assert done.returncode == 0, done.stderr
    (said,) = re.findall("the kernel moved itself by (0x[0-9a-f]+) bytes", done.stderr)
    assert f"Kernel Offset: {said} from" in console.read_text(errors="replace")
    assert re.search(r"`vfs_open\+0x\w+\n +image`\w+\+0x\w+\n +image`\w+\+0x\w+\n", done.stdout), done.stdout


@pytest.mark.long
@pytest.mark.parametrize("image", ["linux-arm64", "linux-6.12-arm64"])
def test_a_kernel_that_moves_knows_that_its_room_is_taken(image: str, tmp_path: Path) -> None:
    """It lists itself with the room in front, and puts no module there. Addresses are hashed there, sizes are not."""
    needs("qemu-system-aarch64")
    script = f"{START}grep -e paging_init -e declare_kernel_vmas /proc/vmallocinfo\npoweroff -f\n"
    initrd, console = tmp_path / "initrd.cpio", tmp_path / "console"
    initrd.write_bytes(initial_file_system("arm64", script))
    there = ("--on", "qemu-system-aarch64 -M virt -cpu cortex-a57 -m 512M", "--append", "console=ttyAMA0 panic=-1")
    words = ("-q", "--console", console, *there, "--initrd", initrd)
    done = kinst_run(*words, "-n", "fbt:::entry { @ = count(); }", real_image(image))
    assert done.returncode == 0, done.stderr
    sizes = [
        int(one)
        for one in re.findall(r"(\d+) (?:paging_init|declare_kernel_vmas)", console.read_text(errors="replace"))
    ]
    symbols = open_image(real_image(image)).symbols
    start, end = (symbols.address_of(name) for name in ("_text", "_etext"))
    assert start is not None and end is not None
    assert max(sizes) > end - start + (4 << 20)


@pytest.mark.long
def test_an_installed_kernel_has_a_room_by_the_names_that_it_keeps(tmp_path: Path) -> None:
    """A vmlinuz has no symbols; where its tables are mapped, its kallsyms say."""
    needs("qemu-system-x86_64")
    initrd = tmp_path / "initrd.cpio"
    initrd.write_bytes(initial_file_system("amd64", PROGRAMS))
    words = ("--initrd", initrd, "--append", "console=ttyS0 panic=-1", real_image("vmlinuz-amd64"))
    program = "fbt::vfs_read:entry { @[execname] = count(); }"
    there = counts(program, *on("amd64"), *words)
    assert sum(there.values()) > 30
    assert there == counts(program, "--memory", "256M", *words)
