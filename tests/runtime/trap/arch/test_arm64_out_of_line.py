"""What does in a slot what an arm64 instruction does where it is: Unicorn runs both."""

import pytest

from kinst.rewriter.standalone.arm64.words import jump
from kinst.runtime.trap.arch.arm64_out_of_line import out_of_line_trampoline
from kinst.targets.arch.arm64 import ARM64, Kind
from kinst.targets.instruction import Verdict
from tests.runtime.trap.arch.risc_unicorn import ARM64_MODEL, Cpu, State
from tests.vectors import arm64 as vectors
from tests.vectors import rows

ROWS = [
    row for group in vectors.GROUPS for row in group if row.verdict == Verdict.EMULATE and row.kind in ARM64.out_of_line
]
ADDRESSES = (0x40_0000, 0x50_0FFC, 0xFFFF_8000_0812_3FFC)
DISTANCES = (0x7F_0008, -0x20_1008)  # of a slot from the instruction: a multiple of 4, but of no page


UNICORNS = [row for row in ROWS if row.kind != Kind.B_COND or not row.code[0] & 16]  # its CPU has no bc.cond


def state(row: rows.Row, address: int) -> State:
    vector = tuple(0x11111111111111111111111111111111 * (number % 8) for number in range(32))
    return State((*vectors.REGISTERS, address, row.flags << 28 | 5), vector)


@pytest.mark.parametrize("row", UNICORNS, ids=lambda row: f"{row.assembly}/{row.flags}")
def test_it_does_what_the_instruction_does(row: rows.Row) -> None:
    made = 0
    for address in ADDRESSES:
        for distance in DISTANCES:
            slot = address + distance - (address + distance) % 8
            code = out_of_line_trampoline(row.kind, row.code, address, slot)
            if code is None:
                continue
            back = jump(slot + 4, address + 4)
            assert back is not None and code[4:8] == ARM64.breakpoints[4] and len(code) in (8, 16)
            here = Cpu(ARM64_MODEL, {address: row.code}).run(state(row, address), address, count=1)
            there = Cpu(ARM64_MODEL, {slot: code[:4] + back + code[8:]}).run(state(row, slot), slot, count=2)
            assert there == here, (hex(address), hex(slot))
            made += 1
    assert made or row.kind == Kind.ADR


def test_every_kind_is_tried() -> None:
    assert {row.kind for row in ROWS} == ARM64.out_of_line


def test_what_is_out_of_reach_has_none() -> None:
    adrp, near, far = bytes.fromhex("00000090"), bytes.fromhex("00000010"), 0xFFFF_8000_0812_3000
    assert out_of_line_trampoline(Kind.ADRP, adrp, far, far + (1 << 32) - 4096) is not None
    assert out_of_line_trampoline(Kind.ADRP, adrp, far, far + (1 << 32) + 4096) is None
    assert out_of_line_trampoline(Kind.ADR, near, far, far + (1 << 20)) is not None
    assert out_of_line_trampoline(Kind.ADR, near, far + 4, far + (2 << 20)) is None  # no address of a page
    assert out_of_line_trampoline(Kind.CBZ, bytes.fromhex("400000b4"), far, far + (1 << 28)) is None
