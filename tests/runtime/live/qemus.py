"""What tests of kinst-run --on share: which QEMU runs a sample, and whether a process is there."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.samples.machines import MACHINES, Sample

LAUNCH = "import sys; from kinst.runtime.cli import run; sys.exit(run(prog_name='kinst-run'))"


def needs(*tools: str) -> None:
    """Skip the test where one is not installed, unless all have to be."""
    for tool in tools:
        if shutil.which(tool) is None:
            assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {tool}"
            pytest.skip(f"no {tool}")


def on(sample: Sample) -> str:
    """What runs it, but for what loads it."""
    return " ".join(word for word in sample.qemu if word not in ("-bios", "none"))


def is_there(process: int) -> bool:
    """Whether it runs."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def ends(process: int) -> bool:
    """Whether it ends within a minute."""
    end = time.monotonic() + 60
    while is_there(process) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_there(process)


def endless(folder: Path) -> Path:
    """A guest for riscv64's virt that calls `work` a thousand times a second, for ever."""
    sample, path = MACHINES["riscv64"], folder / "endless.elf"
    needs(sample.qemu[0], sample.compiler)
    source = Path(__file__).parents[1] / "readout" / "endless.c"
    options = ("-O1", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-mcmodel=medany")
    place = "-Wl,-Ttext-segment=0x80000000,--build-id=none"
    subprocess.run([sample.compiler, *options, place, str(source), "-o", str(path)], check=True)
    return path


def children() -> list[int]:
    """The processes that this one has started, and that run."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [process for process in map(int, found) if Path(f"/proc/{process}/comm").read_text().startswith("qemu")]


@contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[str]]:
    """kinst-run in a process of its own."""
    command = [sys.executable, "-c", LAUNCH, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            yield run
        finally:
            run.kill()
