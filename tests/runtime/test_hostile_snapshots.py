"""Files of snapshots whose CPUs have what no guest can bring about: one line, before the emulator sees any of it.

Without the rules of `targets/arch/*_state.py` the first ones end this process: a table of the MMU that there is not is
looked for behind the emulator's own.
"""

from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.cli import run as kinst_run
from kinst.runtime.machine.snapshots.state import cpu_contents
from kinst.targets.arch.registry import NAMES, arch_by_name
from kinst.targets.errors import MachineError
from tests.fuzz.snapshots import sealed

SAMPLES = Path(__file__).parents[2] / "samples"
# A machine, the place of a word in the state, its size, what it says, and what is said of that.
LIES = (
    ("arm64", 336, 4, 0x8F10_4000, "the mode 0x8f104000 is not that of exception level 1"),
    ("arm64", 640, 8, 0x7FFF_FFF0, "csselr is not what the guest can have made of it"),
    ("arm64", 1136, 8, 31 << 11, "pmcr is not what the guest can have made of it"),
    ("arm64", 12472, 8, 0x4141_4141, "the word at 12472, which is the emulator's own,"),
    ("arm64", 11977, 1, 9, "fp_status.rounding cannot be 0x9"),
    ("riscv64", 592, 8, 2, "priv cannot be 0x2"),
    ("riscv64", 568, 8, 0, "the word at 568, which is the emulator's own,"),
    ("riscv64", 1520, 4, 17, "pmp.rules cannot be 0x11"),
    ("amd64", 604, 4, 1 << 20, "fpstt cannot be 0x100000"),
    ("amd64", 168, 4, 51, "cc_op cannot be 0x33"),
    ("amd64", 424, 8, 1 << 31, "is not that of cr0"),
    ("amd64", 372, 4, 0x8000, "the task register has flags 0x8000"),
    ("amd64", 5464, 8, 0x4141_4141, "the word at 5464, which is the emulator's own,"),
    ("amd64", 5504, 8, 0, "the word at 5504, which is the emulator's own,"),
)


@cache
def _states(machine: str) -> tuple[bytes, bytes]:
    """A CPU's state in a machine that was just made, and when its kernel has run for a while."""
    with open_image(SAMPLES / f"kernel-{machine}.elf") as image:
        trace = image.trace(machine=Machine(clock="icount"))
        trace.guest.snapshots.begin()
        new = cpu_contents(trace.guest.system)[0]
        trace.run(seconds=0.0002)
        return new, cpu_contents(trace.guest.system)[0]


@pytest.mark.turns
@pytest.mark.parametrize("machine", NAMES)
def test_lies_are_told_from_what_a_guest_does(machine: str) -> None:
    new, content = _states(machine)
    layout = arch_by_name(machine).engine.state
    assert len(content) == layout.size
    assert content != new
    assert layout.problem(content, new) is None
    for lied, offset, size, value, what in LIES:
        if lied == machine:
            told = content[:offset] + value.to_bytes(size, "little") + content[offset + size :]
            assert what in (layout.problem(told, new) or ""), (offset, value)


def test_a_file_that_lies_is_an_error_of_one_line(tmp_path: Path) -> None:
    machine, offset, size, value, what = LIES[0]
    path = tmp_path / "file.snap"
    path.write_bytes(
        sealed(machine, [], lambda state: state[:offset] + value.to_bytes(size, "little") + state[offset + size :])
    )
    words = (str(SAMPLES / f"kernel-{machine}.elf"), "--from", str(path), "--timeout", "1ms")
    result = CliRunner().invoke(kinst_run, words)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [f"kinst-run: {path}: is damaged: CPU 0: {what}"]


@pytest.mark.turns
@pytest.mark.parametrize("machine", NAMES)
def test_what_no_reader_would_believe_is_not_written(machine: str, tmp_path: Path) -> None:
    """A CPU that was made otherwise than the reader's is. The file that was there stays, and the guest goes on."""
    path = tmp_path / "file.snap"
    with open_image(SAMPLES / f"kernel-{machine}.elf") as image:
        trace = image.trace(machine=Machine(clock="icount"))
        trace.run(seconds=0.001)
        trace.snapshot(path)
        before, snapshots = path.read_bytes(), trace.guest.snapshots
        (new,) = snapshots._new
        snapshots._new = (bytes(byte ^ 0xFF for byte in new),)
        trace.run(seconds=0.001)
        with pytest.raises(MachineError, match=f"{path}: not written: CPU 0 has a state that snapshots do not know: "):
            trace.snapshot(path)
        assert path.read_bytes() == before
        trace.run()
        assert trace.ending is not None and trace.ending.reason == "power-off"
