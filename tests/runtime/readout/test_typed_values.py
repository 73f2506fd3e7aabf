"""Typed values over memory that is elsewhere: the image is found, and read as the guest's own programs say."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kinst.runtime import ImageFile, KinstError, MemoryFaultError, list_for_each_entry, open_image
from kinst.targets.arch.registry import NAMES
from tests.images import at_hand, real_image
from tests.linux_programs import initial_file_system, qemu
from tests.runtime.readout.qemu import Emulator, _connected, _free_port, emulator

INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
sleep 1000 &
sleep 5
ps -o pid,comm
echo waiting; exec sleep 2000
"""
_PATIENCE = 300  # seconds


@pytest.mark.parametrize("machine", NAMES)
def test_an_image_in_a_core_and_behind_a_stub(machine: str, tmp_path: Path) -> None:
    """As QEMU loads it, before it runs: the same as in its file."""
    path = Path(f"samples/kernel-{machine}.elf")
    with open_image(path) as image, emulator(machine, tmp_path, "-S", "-kernel", str(path)) as guest:
        wanted = [str(image[name]) for name in ("interfaces", "file_ops", "ncpu")]
        for source in (str(guest.dump()), guest.source):
            with image.read(source) as objects:
                assert [str(objects[name]) for name in ("interfaces", "file_ops", "ncpu")] == wanted, source
                with pytest.raises(MemoryFaultError, match="no memory at 0xdead000000000000"):
                    int(objects.object("int", 0xDEAD << 48))
    other = tmp_path / "other"
    other.write_bytes(bytes(4096))
    with (
        open_image(path) as image,
        pytest.raises(KinstError, match=r"is not in .*other"),
        image.read(f"{other}@0x1000"),
    ):
        pass


@contextmanager
def booted(name: str, folder: Path) -> Iterator[tuple[Emulator, str]]:
    """Debian's kernel under QEMU, at the end of INIT, and its console."""
    machine = name.rpartition("-")[2]
    if shutil.which(qemu(machine, real_image(name), folder)[0]) is None:
        pytest.skip("no QEMU")
    (folder / "initrd").write_bytes(initial_file_system(machine, INIT))
    port, monitor = _free_port(), folder / "monitor"
    words = ("-initrd", str(folder / "initrd"), "-append", "console=ttyS0 console=ttyAMA0")
    doors = ("-gdb", f"tcp:localhost:{port}", "-qmp", f"unix:{monitor},server=on,wait=off")
    with (folder / "console").open("wb") as console:
        command = qemu(machine, real_image(name), folder, *words, *doors)
        process = subprocess.Popen(command, stdout=console, stderr=console, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _PATIENCE
        while b"waiting" not in (text := (folder / "console").read_bytes()):
            assert time.monotonic() < end, text[-1000:]
            assert process.poll() is None, "QEMU ended"
            time.sleep(0.5)
        with _connected(monitor, process) as connection:
            yield Emulator(port, connection, folder), text.decode(errors="replace").replace("\r", "")
    finally:
        process.kill()
        process.wait()


def tasks_of(image: ImageFile, source: str) -> dict[int, str]:
    with image.read(source) as objects:
        assert objects.per_cpu("runqueues", 0).cpu == 0
        tasks = list_for_each_entry("struct task_struct", objects["init_task"].tasks, "tasks")
        return {int(task.pid): task.comm.string() for task in tasks}


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-arm64", "linux-riscv64"))
def test_tasks_of_linux_are_those_of_ps(name: str, tmp_path: Path) -> None:
    """arm64's has moved itself: QEMU gives it a seed."""
    with open_image(real_image(name)) as image, booted(name, tmp_path) as (guest, console):
        told = {int(pid): comm for pid, comm in re.findall(r"^ +(\d+) (\S+)$", console, re.MULTILINE) if comm != "ps"}
        told[1] = "sleep"
        assert len(told) > 20
        for source in (str(guest.dump()), guest.source):
            found = tasks_of(image, source)
            assert found.keys() >= {pid for pid, comm in told.items() if not comm.startswith("kworker")}, source
            assert all(told[pid].startswith(("kworker", found[pid])) for pid in told.keys() & found.keys()), source
            assert all(comm.startswith("kworker") for pid, comm in found.items() if pid not in told), source
