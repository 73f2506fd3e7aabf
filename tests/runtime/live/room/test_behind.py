"""A little kernel that treats its page tables as Linux for amd64 does (`kernel_amd64.S`), under QEMU, with a room."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kinst.runtime.live.room.behind import first_loads, may_be_behind
from kinst.targets.image import open_image
from tests.commands.in_process import kinst_run
from tests.runtime.live.qemus import needs
from tests.samples.machines import MACHINES

HERE = Path(__file__).parent
QEMU = "qemu-system-x86_64 -M pc -m 64M"
ONCE = ("xen_prepare_pvh", "scrub", "startup_64", "before_nx", "cleanup_highmap", "pti_init", "error_entry", "ptdump")
RECORDED = "@[probefunc, arg0 == arg0] = count();"
EXPECTED = {**dict.fromkeys(ONCE, 1), "free_initmem": 1, "passed": 1, "work": 5}


def built(path: Path, *options: str) -> Path:
    sample = MACHINES["amd64"]
    needs("qemu-system-x86_64", sample.compiler)
    words = ("-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none,--no-warn-rwx-segments")
    script = f"-Wl,-T,{HERE / 'kernel_amd64.lds'}"
    subprocess.run([sample.compiler, *words, *options, script, HERE / "kernel_amd64.S", "-o", path], check=True)
    return path


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return built(tmp_path / "kernel.elf")


def run(kernel: Path, program: str, *, on: str = QEMU) -> Mapping[str, int]:
    """The values of the only aggregation by its only key."""
    done = kinst_run("-q", "--format", "json", "--timeout", "20s", "--on", on, "-n", program, kernel)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)["dtrace"]
    assert document["end"]["reason"] == "power-off"
    (found,) = document["aggregations"]
    return {str(one["keys"][0]): one["value"] for one in found["aggregation-data"]}


@pytest.mark.parametrize(("program", "lacks"), [("@[probefunc] = count();", ()), (RECORDED, ("startup_64",))])
def test_functions_count_from_the_first_on(kernel: Path, program: str, lacks: Sequence[str]) -> None:
    """Before the kernel is where it is linked, while it removes what it is not, and by the tables of user mode. It
    finds nothing that may be both written and executed, and overwrites what it is told is free. At its first
    instruction no stack is known, and no register is dead."""
    found = run(kernel, f"fbt:::entry {{ {program} }}")
    assert {name: found.get(name, 0) for name in EXPECTED} == EXPECTED | dict.fromkeys(lacks, 0)
    assert found["set_pmd"] > 400


def test_tables_of_five_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = run(
        built(tmp_path / "kernel.elf", "-DFIVE"), "fbt:::entry { @[probefunc] = count(); }", on=f"{QEMU} -cpu max"
    )
    assert {name: found.get(name) for name in EXPECTED} == EXPECTED


def test_what_is_too_little_memory_is_said(kernel: Path) -> None:
    done = kinst_run("-q", "--on", "qemu-system-x86_64 -M pc -m 17M", "-n", "fbt:::entry { @ = count(); }", kernel)
    assert done.returncode == 2
    assert "this board's memory is at 0x100000-0x10fffff: choose a board with memory there" in done.stderr


def test_a_kernel_is_known_by_what_it_has(kernel: Path) -> None:
    image = open_image(kernel)
    assert may_be_behind(image)
    start = image.symbols.address_of("startup_64")
    assert start is not None
    (load,) = (at for at in first_loads(image) if start <= at + 0xFFFF_FFFF_8000_0000 < start + 0x60)
    assert first_loads(image)[load] == "rax"
    assert image.read(load + 0xFFFF_FFFF_8000_0000, 3) == b"\x0f\x22\xd8"
    assert not may_be_behind(open_image(MACHINES["amd64"].image))
