"""How fast a board's time goes under QEMU: what the board says, not what most have."""

import pytest

from kinst.runtime.live.qemu import Qemu
from kinst.runtime.live.timebase import timebase_of
from kinst.targets.machines.machine import CounterSource
from tests.runtime.live.qemus import needs


@pytest.mark.parametrize(
    ("board", "hertz"), [("virt", 10_000_000), ("spike", 10_000_000), ("sifive_u", 1_000_000), ("none", 0)]
)
def test_a_board_says_how_fast_its_time_goes(board: str, hertz: int) -> None:
    needs("qemu-system-riscv64")
    qemu = Qemu(["qemu-system-riscv64", "-M", board, "-bios", "none"], None, wants_console=False)
    try:
        assert timebase_of(qemu.monitor, CounterSource.TIMER_PROPERTY) == hertz
    finally:
        qemu.close()


@pytest.mark.parametrize(("board", "hertz"), [("virt", 62_500_000), ("raspi3b", 62_500_000), ("none", 0)])
def test_a_cpu_says_it_wherever_a_board_has_it(board: str, hertz: int) -> None:
    needs("qemu-system-aarch64")
    qemu = Qemu(["qemu-system-aarch64", "-M", board], None, wants_console=False)
    try:
        assert timebase_of(qemu.monitor, CounterSource.CPU_PROPERTY) == hertz
    finally:
        qemu.close()
