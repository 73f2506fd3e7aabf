"""Where the emulator has the general registers of a CPU: what is found follows them on each machine, or nothing is."""

import ctypes
import random

import pytest

from kinst.runtime.engine.live_pc import find_live_pc
from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.registers.general_registers import general_registers
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import ARCHES

each_arch = pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)


def live_pc(engine: QilingMachine) -> int:
    found = find_live_pc(engine._handle.value or 0, engine.pc, engine._write_pc_only)
    assert found is not None
    return found


@each_arch
def test_the_registers_before_the_pc_are_found_and_keep_their_values(arch: ArchFacts) -> None:
    engine, draw, names = QilingMachine(arch), random.Random(1), arch.registers[: arch.pc]
    before = {name: draw.getrandbits(64) for name in names if name != "zero"}
    for name, value in before.items():
        engine.live.set(name, value)
    engine.set_pc(0x1234)

    found = general_registers(live_pc(engine), engine.states, names)

    words = (ctypes.c_uint64 * len(names)).from_address(found)
    assert {name: engine.live.get(name) for name in before} == before
    assert engine.pc() == 0x1234
    for _ in range(3):
        values = {name: draw.getrandbits(64) for name in before}
        for name, value in values.items():
            engine.live.set(name, value)
        assert {name: words[names.index(name)] for name in before} == values


@each_arch
def test_registers_that_lie_otherwise_are_not_found(arch: ArchFacts) -> None:
    engine = QilingMachine(arch)
    names = tuple(reversed(arch.registers[: arch.pc]))

    assert general_registers(live_pc(engine), engine.states, names) == 0
