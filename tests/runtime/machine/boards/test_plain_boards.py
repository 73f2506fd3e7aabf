"""Boards of board files: a machine that is described runs as the one that is modelled."""

from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.samples.machines import MACHINES, expected_console

START = {"arm64": 'x0 = "fdt"', "riscv64": 'a0 = "cpu"\na1 = "fdt"'}


def board(folder: Path, machine: str, more: str = "") -> Path:
    path = folder / "mine.toml"
    extends = f'extends = "virt-{machine}"\nstarts = "plain-{machine}"\n'
    path.write_text(f"{extends}\n[start]\n{START[machine]}\n{more}")
    return path


@pytest.mark.parametrize("machine", sorted(START))
def test_the_sample_kernel_runs_the_same(machine: str, tmp_path: Path) -> None:
    """Devices, interrupts, timers and the second CPU are those of the modelled board."""
    file, image = board(tmp_path, machine), MACHINES[machine].image
    described = kinst_run("-q", "--cpus", 2, "--clock", "icount", "--board", file, image)
    modelled = kinst_run("-q", "--cpus", 2, "--clock", "icount", image)
    assert described.stdout == modelled.stdout == expected_console(2)
    assert described.stderr == ""


def test_a_board_of_another_architecture(tmp_path: Path) -> None:
    result = kinst_run("--board", board(tmp_path, "arm64"), MACHINES["riscv64"].image)
    assert result.returncode == 2
    assert result.stderr == f"kinst-run: {MACHINES['riscv64'].image}: is for riscv64, and mine is not\n"


def test_dtb_needs_somebody_to_go_to(tmp_path: Path) -> None:
    file = board(tmp_path, "arm64", "x0 = 0\n".replace("x0", "x1"))
    file.write_text(file.read_text().replace('x0 = "fdt"', ""))
    tree = tmp_path / "tree.dtb"
    tree.write_bytes(b"\xd0\x0d\xfe\xed")
    result = kinst_run("--board", file, "--dtb", tree, MACHINES["arm64"].image)
    assert result.returncode == 1
    assert result.stderr == 'kinst-run: --dtb: mine passes on no device tree: [start] needs x0 = "fdt"\n'


def test_the_end_says_what_was_assumed(tmp_path: Path) -> None:
    """Without its interrupt controller the sample kernel talks to registers that nobody models."""
    rules = '[registers]\nunnamed = "last"\n[registers.controller]\naddress = 0x0800_0000\nsize = 0x2_0000\n'
    file = board(tmp_path, "arm64", f"[devices]\ngic = false\ngic-cpu = false\ngic-v2m = false\n{rules}")
    result = kinst_run("--clock", "icount", "--board", file, "--timeout", "300ms", MACHINES["arm64"].image)
    lines = [line for line in result.stderr.splitlines() if "assumed: controller" in line]
    assert any("(0x8000000): " in line and "written 1x" in line and "kernel-arm64`" in line for line in lines)
    quiet = kinst_run("-q", "--clock", "icount", "--board", file, "--timeout", "300ms", MACHINES["arm64"].image)
    assert "assumed" not in quiet.stderr
