"""Guests that mean harm: the host process lives, ends when told to, takes little memory, and says what they did."""

import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from kinst.rewriter.arch.registry import dissector
from kinst.runtime.cli import run
from kinst.runtime.engine import bare_qiling
from kinst.targets.arch.registry import NAMES, arch_by_name
from tests.dlang.test_hostile import kilobytes
from tests.runtime.hostile_guests import GOES_ON, GUESTS, Guest

COMPILERS: Final = {
    "amd64": "x86_64-linux-gnu-gcc",
    "arm64": "aarch64-linux-gnu-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
}
BASES: Final = {"amd64": 0x20_0000, "arm64": 0x4020_0000, "riscv64": 0x8000_0000}
OPTIONS: Final = {"amd64": (), "arm64": ("-march=armv8-a",), "riscv64": ("-march=rv64g",)}
MEMORY: Final = 300  # MB that a guest may take, beside the tests themselves
TIME: Final = 60  # s until it counts as a hang
_FORK: Final = multiprocessing.get_context("fork")

for _name in NAMES:
    dissector(arch_by_name(_name))  # its tables take a second to make: once, not in each process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory")


def built(guest: Guest, folder: Path) -> Path:
    """Its image: one section at the start of the machine's memory for images."""
    compiler = COMPILERS[guest.machine]
    if shutil.which(compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler}"
        pytest.skip(f"no {compiler}")
    source, image = folder / "guest.S", folder / "guest.elf"
    source.write_text(f".globl _start\n.type _start, @function\n_start: {guest.program}\n.size _start, . - _start\n")
    layout = ("-nostdlib", "-static", "-no-pie", "-Wl,--omagic,--no-warn-rwx-segments,--build-id=none")
    place = f"-Wl,-Ttext={BASES[guest.machine]:#x}"
    subprocess.run([compiler, *OPTIONS[guest.machine], *layout, place, str(source), "-o", str(image)], check=True)
    return image


def _child(words: list[str], end: Connection) -> None:
    before = kilobytes("VmRSS")
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    wrong = "" if isinstance(result.exception, SystemExit | None) else repr(result.exception)
    end.send((result.exit_code, result.stderr, wrong, (kilobytes("VmHWM") - before) >> 10))


def _wait(process: int, seconds: float) -> None:
    """Until a process has had so much time of a CPU, or has stood still for twice as long in all: it runs its guest by
    then, also on a host that has others to serve."""
    used, still = 0.0, 0.0
    while used < seconds and still < 2 * seconds:
        time.sleep(0.1)
        ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        now = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        used, still = now, still + 0.1 * (now == used)


def harm(words: list[str], interrupt_after: float | None = None) -> tuple[int, list[str], str, int]:
    """Exit status, what was told, what went wrong inside and MB taken, of a process of its own that must not crash."""
    mine, its = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_child, args=(words, its))
    process.start()
    its.close()
    try:
        if interrupt_after is not None:
            _wait(process.pid or 0, interrupt_after)
            os.kill(process.pid or 0, signal.SIGINT)
        assert mine.poll(TIME), "it hangs"
        status, errors, wrong, taken = mine.recv()
    except EOFError:
        process.join()
        raise AssertionError(f"it crashed: {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    return status, [line.removeprefix("kinst-run: ") for line in errors.splitlines()], wrong, taken


@pytest.mark.parametrize("guest", GUESTS, ids=lambda guest: f"{guest.machine}-{guest.name}")
def test_harm(guest: Guest, tmp_path: Path) -> None:
    # Who ends by itself is found out by what it does, however busy the host is.
    timeout = "150ms" if not guest.says or "wall-timeout" in guest.says else "10s"
    words = ["--wall-timeout", timeout, *guest.options, str(built(guest, tmp_path))]
    status, told, wrong, taken = harm(words)
    assert (wrong, [line for line in told if "internal error" in line]) == ("", [])
    assert status in (0, 1, 3, 5, 6)  # docs/guide/ends.md
    assert bool(told) or "-qn" in guest.options
    assert re.match(guest.says, told[0] if told else "")
    assert taken < MEMORY


# What holds the host longest: it waits for a timer, repeats one instruction, or calls us at each.
STUBBORN: Final = {
    ("riscv64", "timer-of-never"): ("-x", "switchrate=1000s"),
    ("amd64", "endless-string"): (),
    ("amd64", "endless-string-probed"): (),
    ("arm64", "exclusive-device"): ("--clock", "icount"),
}


@pytest.mark.parametrize("key", STUBBORN, ids="-".join)
def test_ctrl_c_ends_it(key: tuple[str, str], tmp_path: Path) -> None:
    guest = next(guest for guest in GUESTS if (guest.machine, guest.name) == key)
    words = [*STUBBORN[key], *guest.options, str(built(guest, tmp_path))]
    status, told, wrong, _ = harm(words, interrupt_after=1.0)
    assert (status, wrong) == (0, "")
    assert [line[:18] for line in told] == ([] if "-qn" in guest.options else ["interrupted: CPU 0"])


def test_code_that_changes_all_the_time_takes_a_bounded_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was translated before is forgotten when its place is full, some hundred times in this run."""
    monkeypatch.setattr(bare_qiling, "_TRANSLATED", 1 << 20)
    guest = next(guest for guest in GUESTS if guest.name == "writes-over-itself")
    status, told, wrong, taken = harm(["--wall-timeout", "3s", str(built(guest, tmp_path))])
    assert (status, wrong) == (0, "")
    assert re.match(GOES_ON, told[0])
    assert taken < 60


def test_a_wall_timeout_ends_a_turn_of_the_instruction_clock(tmp_path: Path) -> None:
    """500,000 instructions of which each comes to us: a turn of 20 seconds."""
    guest = next(guest for guest in GUESTS if (guest.machine, guest.name) == ("arm64", "exclusive-device"))
    before = time.monotonic()
    _, told, _, _ = harm(["--clock", "icount", "--wall-timeout", "300ms", str(built(guest, tmp_path))])
    assert time.monotonic() - before < TIME
    assert re.match("wall-timeout: ", told[0])
