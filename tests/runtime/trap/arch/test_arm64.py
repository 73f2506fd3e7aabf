import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinst.rewriter.arch.arm64 import DISSECTOR, TABLE
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.arch.arm64 import EMULATOR
from kinst.targets.arch.arm64 import ARM64, PC, PSTATE, SP, Kind
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
from tests.runtime.trap.arch.risc_unicorn import ARM64_MODEL, State
from tests.runtime.trap.arch.risc_vectors import FaultingFrame, RecordedFrame
from tests.vectors import arm64 as vectors
from tests.vectors import rows


def is_comparable(sample: Sample) -> bool:
    """Not bc.cond, which Unicorn's Cortex-A72 lacks; not ldp into one register twice, which the manual leaves open."""
    word = int.from_bytes(sample.code, "little")
    if sample.kind == Kind.B_COND:
        return not word & 16
    return sample.kind != Kind.LDP_POST_SP or word & 31 != word >> 10 & 31


EMULATED = [row for group in vectors.GROUPS for row in group if row.verdict == Verdict.EMULATE]
IMAGES = at_hand("u-boot-arm64", "xen-arm64", "linux-arm64")
SLOT = 0xFFFF_8000_FFFF_F008
FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(FEW, max_examples=150)
# Any flags; EL1 with its own stack pointer; interrupts masked or not.
PSTATES = st.builds(lambda nzcv, daif: nzcv << 28 | daif << 6 | 5, st.integers(0, 15), st.integers(0, 15))
# Pages that no draw stores to: Unicorn leaves a block whose page is written before it has counted to the end.
SITES = st.sampled_from((0x40_0000, 0x50_0FFC, 0xFFFF_8000_0812_3FFC, 0xA00_0020_0000))


def test_registers_have_the_names_of_regs_d() -> None:
    """FreeBSD's numbers; the PC follows sp on arm64 and x31 on riscv64."""
    named = {"R_X0": "x0", "R_X29": "x29", "R_FP": "x29", "R_LR": "x30", "R_SP": "sp", "R_PC": "pc"}

    assert {name: ARM64.registers[ARM64.register_names[name]] for name in named} == named
    assert ARM64.register_names["R_PC"] == ARM64.pc == 32


def start(flags: int) -> list[int]:
    return [*vectors.REGISTERS, rows.PC, flags << 28]


@pytest.mark.parametrize("row", EMULATED, ids=lambda row: f"{row.assembly}/{row.flags}")
def test_an_instruction_has_its_recorded_effect(row: rows.Row) -> None:
    frame = RecordedFrame(start(row.flags))

    EMULATOR.emulation(row.kind, row.code).run(frame_of(frame))

    # A vector register that is loaded with what it held does not show in the table.
    effect = frame.effect(start(row.flags), ARM64.registers, PC)
    assert {
        name: value for name, value in effect.items() if value != before(name)
    } == row.effect or effect == row.effect


def before(name: str) -> int:
    """What the oracle's memory and vectors held, for stores that change nothing."""
    if name.startswith("v"):
        return 0x11111111111111111111111111111111 * (int(name[1:]) % 8)
    if name.startswith("["):
        address = int(name[1:-1], 16)
        return int.from_bytes((rows.memory_byte(at) for at in range(address, address + 8)), "little")
    return -1


def test_every_emulated_kind_of_the_table_has_an_effect() -> None:
    assert {row.kind for row in EMULATED} == {kind for kind in Kind if 1 <= kind < Kind.WAIT}


@pytest.mark.parametrize("row", [row for row in EMULATED if row.kind in (Kind.STP_PRE_SP, Kind.LDR_LITERAL_X)])
def test_a_fault_leaves_the_registers_alone(row: rows.Row) -> None:
    frame = FaultingFrame(start(0))

    with pytest.raises(PageFault):
        EMULATOR.emulation(row.kind, row.code).run(frame_of(frame))

    assert frame.regs == start(0)


REAL = samples(DISSECTOR, IMAGES, Verdict.EMULATE, limit=500)
POOL = {
    kind: [sample for sample in drawn + REAL.get(kind, []) if is_comparable(sample)]
    for kind, drawn in invented(TABLE, 4, 200).items()
}


def test_there_are_instructions_of_every_emulated_kind() -> None:
    assert set(POOL) == {row.kind for row in EMULATED}
    assert len(REAL) > 20


@pytest.mark.parametrize("kind", sorted(POOL), ids=lambda kind: Kind(kind).name)
@FEW
@given(data=st.data())
def test_emulated_is_as_in_place(kind: int, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(POOL[kind]))
    state = data.draw(states(34, {SP: 0x20_0000, PSTATE: data.draw(PSTATES)}, 128))

    check_emulation(ARM64_MODEL, EMULATOR, sample, state, data.draw(SITES))


def is_system(sample: Sample) -> bool:
    """Instructions that steer the CPU: nothing about them can be seen in one step, or Unicorn stops."""
    return int.from_bytes(sample.code, "little") >> 22 == 0b1101010100


COPIED = [sample for sample in samples(DISSECTOR, IMAGES, Verdict.COPY, 4000)[Kind.OTHER] if not is_system(sample)]


@MANY
@given(sample=st.sampled_from(COPIED), state=states(34, {SP: 0x20_0000, PC: 0, PSTATE: 0x3C5}, 128), site=SITES)
def test_in_a_trampoline_is_as_in_place(sample: Sample, state: State, site: int) -> None:
    check_trampoline(ARM64_MODEL, DISSECTOR, sample, state, site, SLOT)
