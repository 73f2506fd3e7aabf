"""kinst-batch with `on`: several guests in QEMUs at a time, and none is left."""

import csv
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.batch.cli import batch
from tests.runtime.live.qemus import endless, ends, needs
from tests.samples.machines import MACHINES

FILE = """
[[run]]
images = [{images}]
programs = ["fbt::vfs_get:entry {{ @ = count(); }}", "fbt::vfs_create:entry {{ trace(arg1); }}"]
on = "qemu -m 64M"
report = true
"""
LAUNCH = "import sys; from kinst.runtime.batch.cli import batch; sys.exit(batch(prog_name='kinst-batch'))"


@pytest.mark.long
def test_boots_of_all_machines(tmp_path: Path) -> None:
    for sample in MACHINES.values():
        needs(sample.qemu[0])
    source = tmp_path / "b.toml"
    source.write_text(FILE.format(images=", ".join(f'"{sample.image}"' for sample in MACHINES.values())))
    words = [str(source), "--jobs", "3", "--table", "csv", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(batch, words, prog_name="kinst-batch")
    assert done.exit_code == 0, done.output
    with (tmp_path / "out" / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["machine"] for row in rows} == {*MACHINES}
    assert {row["end"] for row in rows} == {"power-off"}
    assert [row["aggregations"] for row in rows if row["aggregations"]] == ['{"_":[[[],176]]}'] * 3
    assert [row["records"] for row in rows if not row["aggregations"]] == ["23"] * 3
    assert all("checksum cd353ace" in row["console"] for row in rows)
    assert all((tmp_path / "out" / row["report"]).is_file() for row in rows)


def descendants(process: int) -> list[int]:
    """What a process has started, and what that has."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


def qemus(process: int) -> list[int]:
    """Those among them that are QEMUs."""
    found = []
    for child in descendants(process):
        with suppress(OSError):
            if Path(f"/proc/{child}/comm").read_text().startswith("qemu"):
                found.append(child)
    return found


def test_a_kill_leaves_none(tmp_path: Path) -> None:
    image = endless(tmp_path)
    program = "fbt::work:entry { @ = count(); }"
    words = [str(image), "-n", program, "-n", f"{program} BEGIN {{}}", "--on", "qemu -m 64M", "-j", "2"]
    command = [sys.executable, "-c", LAUNCH, *words, "-o", str(tmp_path / "out"), "--table", "csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        try:
            end = time.monotonic() + 120
            while len(found := qemus(run.pid)) < 2:
                assert time.monotonic() < end and run.poll() is None, run.communicate()
                time.sleep(0.05)
            os.kill(run.pid, signal.SIGKILL)
            run.communicate(timeout=60)
        finally:
            run.kill()
    assert all(map(ends, found))


def test_one_that_takes_too_long_is_ended_or_killed_with_its_qemu(tmp_path: Path) -> None:
    name = f"kinst-{tmp_path.name}-{os.getpid()}"
    on = f"qemu -m 64M -name {name}"
    words = [str(endless(tmp_path)), "-n", "fbt::work:entry { @ = count(); }", "--on", on, "--timeout", "3s"]
    done = CliRunner().invoke(batch, [*words, "-o", str(tmp_path / "out"), "--table", "csv"], prog_name="kinst-batch")
    assert done.exit_code == 1
    with (tmp_path / "out" / "table.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["outcome"] == "timeout"
    assert not [path for path in Path("/proc").iterdir() if path.name.isdecimal() and is_named(path, name)]


def is_named(process: Path, name: str) -> bool:
    """Whether it is a QEMU of this name."""
    with suppress(OSError):
        words = (process / "cmdline").read_text().split("\0")
        return words[0].startswith("qemu-system") and name in words
    return False


def test_what_it_cannot_do_is_told_in_the_row(tmp_path: Path) -> None:
    source = tmp_path / "b.toml"
    image = MACHINES["riscv64"].image
    source.write_text(f'[[run]]\nimages = "{image}"\nprograms = "BEGIN"\non = "qemu"\nclock = "icount"\n')
    words = [str(source), "-o", str(tmp_path / "out"), "--table", "csv"]
    done = CliRunner().invoke(batch, words, prog_name="kinst-batch")
    assert done.exit_code == 0, done.output  # a refusal is an answer
    with (tmp_path / "out" / "table.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["outcome"], row["reason"]) == (
        "refused",
        "--clock icount: is for our own machine: QEMU's time is the host's",
    )


def test_without_a_boot_there_is_nothing_to_run_there() -> None:
    words = [str(MACHINES["riscv64"].image), "-p", "fbt:::entry", "--on", "qemu"]
    done = CliRunner().invoke(batch, words, prog_name="kinst-batch")
    assert (done.exit_code, "--on: is for boots: give -s or -n" in done.output) == (2, True)
