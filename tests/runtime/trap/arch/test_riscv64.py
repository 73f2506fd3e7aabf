import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinst.rewriter.arch.riscv64 import COMPRESSED, DISSECTOR, TABLE
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.arch.riscv64 import EMULATOR
from kinst.targets.arch.riscv64 import PC, RISCV64, Kind
from kinst.targets.instruction import Verdict
from tests.images import at_hand
from tests.runtime.trap.arch.frames import frame_of
from tests.runtime.trap.arch.risc_properties import (
    Sample,
    check_emulation,
    check_trampoline,
    invented,
    samples,
    states,
)
from tests.runtime.trap.arch.risc_unicorn import RISCV64_MODEL, State
from tests.runtime.trap.arch.risc_vectors import FaultingFrame, RecordedFrame
from tests.vectors import riscv64 as vectors
from tests.vectors import rows

EMULATED = [row for group in vectors.GROUPS for row in group if row.verdict == Verdict.EMULATE]
IMAGES = at_hand("opensbi-1.1", "opensbi-1.6", "u-boot-riscv64", "linux-riscv64")
SLOT = 0xFFFF_FFFF_9FFF_F008
FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(FEW, max_examples=150)
# Pages that no draw stores to: Unicorn leaves a block whose page is written before it has counted to the end.
SITES = st.sampled_from((0x40_0000, 0x8000_0FFC, 0xFFFF_FFFF_8051_2FF2, 0xFFFF_FFFF_8000_0006))
STATES = states(33, {0: 0, PC: 0}, 64)


def test_registers_have_the_names_of_regs_d() -> None:
    """FreeBSD's numbers; the PC follows sp on arm64 and x31 on riscv64."""
    named = {
        "R_ZERO": "zero",
        "R_RA": "ra",
        "R_SP": "sp",
        "R_S0": "s0",
        "R_FP": "s0",
        "R_A0": "a0",
        "R_A7": "a7",
        "R_S2": "s2",
        "R_T6": "t6",
        "R_PC": "pc",
    }

    assert {name: RISCV64.registers[RISCV64.register_names[name]] for name in named} == named
    assert RISCV64.register_names["R_PC"] == RISCV64.pc == 32


def start() -> list[int]:
    return [*vectors.REGISTERS, rows.PC]


@pytest.mark.parametrize("row", EMULATED, ids=lambda row: row.assembly)
def test_an_instruction_has_its_recorded_effect(row: rows.Row) -> None:
    frame = RecordedFrame(start())

    EMULATOR.emulation(row.kind, row.code).run(frame_of(frame))

    assert frame.effect(start(), RISCV64.registers, PC) == row.effect


def test_every_emulated_kind_of_the_table_has_an_effect() -> None:
    assert {row.kind for row in EMULATED} == {kind for kind in Kind if 1 <= kind < Kind.WAIT}


@pytest.mark.parametrize("row", [row for row in EMULATED if row.kind in (Kind.SD_SP, Kind.C_SDSP)])
def test_a_fault_leaves_the_registers_alone(row: rows.Row) -> None:
    frame = FaultingFrame(start())

    with pytest.raises(PageFault):
        EMULATOR.emulation(row.kind, row.code).run(frame_of(frame))

    assert frame.regs == start()


def test_auipc_to_x0_writes_nothing() -> None:
    """The dissector takes it for a landing pad; the emulation is right all the same."""
    frame = RecordedFrame(start())

    emulation = EMULATOR.emulation(Kind.AUIPC, (0x12345017).to_bytes(4, "little"))
    emulation.run(frame_of(frame))

    assert frame.effect(start(), RISCV64.registers, PC) == {"pc": rows.PC + 4}
    assert emulation.writes == ()


REAL = samples(DISSECTOR, IMAGES, Verdict.EMULATE, limit=500)
INVENTED = invented(TABLE, 4, 200) | invented(COMPRESSED, 2, 200)


def test_there_are_instructions_of_every_emulated_kind() -> None:
    assert set(INVENTED) == {row.kind for row in EMULATED}
    assert set(REAL) <= set(INVENTED)
    assert len(REAL) > 20


@pytest.mark.parametrize("kind", sorted(INVENTED), ids=lambda kind: Kind(kind).name)
@FEW
@given(data=st.data())
def test_emulated_is_as_in_place(kind: int, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(INVENTED[kind] + REAL.get(kind, [])))

    check_emulation(RISCV64_MODEL, EMULATOR, sample, data.draw(STATES), data.draw(SITES))


def is_system(sample: Sample) -> bool:
    """Instructions that steer the CPU: nothing about them can be seen in one step, or Unicorn stops."""
    return sample.code[0] & 0x7F == 0b1110011


DRAWN = samples(DISSECTOR, IMAGES, Verdict.COPY, 4000)
COPIED = [sample for kind in (Kind.OTHER, Kind.ATOMIC) for sample in DRAWN[kind] if not is_system(sample)]


@MANY
@given(sample=st.sampled_from(COPIED), state=STATES, site=SITES)
def test_in_a_trampoline_is_as_in_place(sample: Sample, state: State, site: int) -> None:
    check_trampoline(RISCV64_MODEL, DISSECTOR, sample, state, site, SLOT)
