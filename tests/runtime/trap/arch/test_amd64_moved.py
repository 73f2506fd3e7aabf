"""Trampolines of moved amd64 instructions: Unicorn runs the original where it lies and the trampoline far from it."""

import re

import pytest

from kinst.runtime.trap.arch.amd64_moved import moved_trampoline
from kinst.targets.arch.amd64 import AMD64, RIP, Kind
from kinst.targets.instruction import Flow, Verdict
from tests.runtime.trap.arch.amd64_unicorn import Cpu, Outcome, State
from tests.runtime.trap.arch.test_amd64 import random_state
from tests.vectors.amd64 import VECTORS, Vector

NEAR = re.compile(r"[ -](?:0x[0-9a-f]{1,4})?\(%[re]ip\)")  # operands that are near the instruction
RELATIVE = [
    vector
    for vector in VECTORS
    if vector.kind is Kind.RELATIVE and vector.verdict is Verdict.COPY and NEAR.search(vector.text)
]
CALLS = [vector for vector in VECTORS if vector.kind is Kind.CALL and vector.verdict is Verdict.EMULATE]
# The first and the last 2 GiB, which a displacement reaches, and the rest of the first 4.
EVERYWHERE = (0x40_1000, 0xFFFF_FFFF_8100_0FFD, 0xA000_0FF0)
SLOT = 0x1234_5678_9000


def both(vector: Vector, address: int, slot: int) -> tuple[Outcome, Outcome]:
    """The original at `address`, and its trampoline, which goes back there."""
    code = moved_trampoline(vector.kind, vector.code, address, slot)
    assert code is not None
    assert len(code) <= AMD64.longest_trampoline
    memory, following = {address: vector.code, slot: code}, address + len(vector.code)
    state, count = random_state(3, address), 0 if vector.flow is Flow.NEXT else 1
    there = Cpu(memory).run(state, slot, following, count)
    if there.fault and slot <= there.state.regs[RIP] < slot + len(code):
        regs = list(there.state.regs)
        regs[RIP] += address - slot
        there = Outcome(State(tuple(regs), there.state.xmm), there.pages, there.fault)
    return Cpu(memory).run(state, address, following, count), there


@pytest.mark.parametrize("vector", RELATIVE, ids=str)
def test_an_operand_means_the_same_from_everywhere(vector: Vector) -> None:
    for address in EVERYWHERE:
        for slot in (SLOT, address + 0x100_0000):
            here, there = both(vector, address, slot)
            assert there == here, (hex(address), hex(slot))


@pytest.mark.parametrize("vector", CALLS, ids=str)
def test_a_call_pushes_where_it_would_return_to_and_goes_where_it_would(vector: Vector) -> None:
    """The trampoline takes three instructions for it, and the third one is the jump to the call's target."""
    for address in EVERYWHERE:
        for slot in (SLOT, address + 0x100_0000):
            code = moved_trampoline(vector.kind, vector.code, address, slot)
            assert code is not None
            assert len(code) <= AMD64.longest_trampoline
            memory, state = {address: vector.code, slot: code}, random_state(3, address)
            here, there = Cpu(memory).run(state, address, 0, 1), Cpu(memory).run(state, slot, 0, 3)
            assert there == here, (hex(address), hex(slot))


def test_what_no_displacement_reaches_has_no_trampoline() -> None:
    load = bytes.fromhex("488b0500100000")  # mov 0x1000(%rip), %rax
    far = 0x5555_5555_0000
    assert moved_trampoline(Kind.RELATIVE, load, far, SLOT) is None
    assert moved_trampoline(Kind.RELATIVE, load, far, far + 0x1000) is not None


def test_an_instruction_that_would_become_too_long_has_none() -> None:
    longest = bytes.fromhex("2e2e2e2e2e2e4881050010000001000000")[-15:]
    assert moved_trampoline(Kind.RELATIVE, longest, EVERYWHERE[0], SLOT) is None


@pytest.mark.parametrize("code", ["4a8b0500100000", "c4a178580500100000", "62b17c48580500100000"])
def test_an_index_that_only_a_sib_would_show_stays_hidden(code: str) -> None:
    """REX.X and its like mean nothing with RIP; in an absolute operand they would add r12."""
    instruction = bytes.fromhex(code)
    assert moved_trampoline(Kind.RELATIVE, instruction, EVERYWHERE[0], SLOT) is None
    assert moved_trampoline(Kind.RELATIVE, instruction, EVERYWHERE[0], EVERYWHERE[0] + 0x1000) is not None


def test_an_instruction_without_such_an_operand_is_itself() -> None:
    code = moved_trampoline(Kind.OTHER, b"\x55", EVERYWHERE[0], SLOT)
    assert code == b"\x55\xff\x25\0\0\0\0" + (EVERYWHERE[0] + 1).to_bytes(8, "little")
