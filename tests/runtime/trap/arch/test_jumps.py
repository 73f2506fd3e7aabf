"""The jumps that end trampolines, executed by Unicorn."""

import pytest
import unicorn
from unicorn import arm64_const, riscv_const

from kinst.runtime.trap.arch.registry import jump
from kinst.targets.arch.registry import ARCHES, arch_by_name

BASE = 0x1000_0000
REACHES = {"arm64": 1 << 27, "riscv64": 1 << 20}
ENGINES = {
    "arm64": (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM, arm64_const.UC_ARM64_REG_PC, 4),
    "riscv64": (unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64, riscv_const.UC_RISCV_REG_PC, 2),
}


@pytest.mark.parametrize("name", REACHES)
def test_it_leads_to_its_target(name: str) -> None:
    make = jump(arch_by_name(name))
    assert make is not None
    arch, mode, pc, unit = ENGINES[name]
    for distance in (unit, -unit, 0x12344, -0x98764, REACHES[name] - unit, -REACHES[name]):
        cpu = unicorn.Uc(arch, mode)
        for page in {(BASE + at) & -4096 for at in (0, distance)}:
            cpu.mem_map(page, 4096)
        code = make(BASE, BASE + distance)
        assert code is not None
        cpu.mem_write(BASE, code)
        cpu.emu_start(BASE, BASE + distance, count=1)
        assert cpu.reg_read(pc) == BASE + distance


@pytest.mark.parametrize("name", REACHES)
def test_it_does_not_reach_everything(name: str) -> None:
    make = jump(arch_by_name(name))
    assert make is not None
    assert make(BASE, BASE + REACHES[name]) is None
    assert make(BASE, BASE - REACHES[name] - 4) is None


def test_others_need_none() -> None:
    assert {arch.name for arch in ARCHES if jump(arch) is None} == {arch.name for arch in ARCHES} - set(REACHES)
