"""Real code in Unicorn, from places drawn at random: once as it is, once with all that is dead there poisoned."""

import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.liveness.dead import dead_before
from kinst.rewriter.liveness.effects import EVERYTHING, effector
from kinst.rewriter.program import Program, instructions_of, open_program
from kinst.targets.image import open_image
from kinst.targets.instruction import Flow, Instructions, Reason
from tests.gated import long_where
from tests.images import at_hand, real_image
from tests.rewriter.liveness.machine import Machine, drawn_values, poisoned
from tests.rewriter.tracer_call import is_after_tracer_call

IMAGES = at_hand(
    "opensbi-1.6", "u-boot-arm64", "u-boot-amd64", "gnumach", "linux-amd64", "linux-arm64", "linux-riscv64"
)
PLACES = 40
STEPS = 300
DIRECT = (Flow.JUMP, Flow.CALL)
ROOM = 1 << 16


@dataclass(frozen=True, eq=False)
class Code:
    """An image's instructions, and what is dead before each."""

    program: Program
    found: Instructions
    dead: NDArray[np.uint32]


@cache
def code_of(image: str) -> Code:
    program = open_program(open_image(real_image(image)))
    found = instructions_of(program, np.arange(len(program.functions)))
    return Code(program, found, dead_before(Dataflow.of(program, found)))


def around(code: Code, address: int) -> tuple[int, bytes]:
    """The code within `ROOM` bytes of an address, and where it begins. The rooms for the kernel's tracer are empty."""
    image, found = code.program.image, code.found
    region = next(one for one in image.code_regions if 0 <= address - one.address < one.size)
    low, high = max(address - ROOM, region.address), min(address + ROOM, region.address + region.size)
    content = bytearray(image.read(low, high - low))
    for row in np.flatnonzero(
        (found.reason == Reason.TRACER_CALL) & (found.address - np.uint64(low) < len(content) - 16)
    ):
        at, size = int(found.address[row]) - low, int(found.size[row])
        content[at : at + size] = image.facts.sized_nops[size]
    return low, bytes(content)


@cache
def rooms(code: Code) -> dict[int, int]:
    """The instructions in rooms for the kernel's tracer, and the registers that it does not preserve."""
    rows = code.found.address[code.found.reason == Reason.TRACER_CALL]
    return dict.fromkeys(rows.tolist(), tracer_scratch(code.program))


def tracer_scratch(program: Program) -> int:
    facts = program.image.facts
    flags = sum(effector(facts).flags.values())
    return sum(1 << facts.registers.index(name) for name in facts.linux.tracer_scratch) | flags


def disagreements(code: Code, dead: NDArray[np.uint32], seed: int) -> list[str]:
    """Places from which the two runs differ in what they do, or in what is not dead where they end."""
    name, found = code.program.image.facts.name, code.found
    choose, wrong = random.Random(seed), []
    for row in choose.sample(np.flatnonzero(dead).tolist(), PLACES):
        start = int(found.address[row])
        low, content = around(code, start)
        first_row, last_row = np.searchsorted(found.address, (low, low + len(content) - 16))
        within = frozenset(found.address[first_row:last_row].tolist())
        values = drawn_values(name, choose)
        other = poisoned(values, int(dead[row]), choose)
        first, again, second = (
            Machine(name, content, low, rooms(code)).run(start, one, STEPS, within) for one in (values, values, other)
        )
        is_half = found.flow[row] in DIRECT and first.path[1:2] != (found.target[row],)
        if first != again or is_half:
            continue  # it reads a clock, or is the second half of a pair, which jumps by what the first half computed
        # Where a fault is, the registers are those before the instruction.
        end = second.path[-1] if second.fault else second.stopped
        at = int(np.searchsorted(found.address, end))
        may_differ = int(dead[at]) if at < len(found) and found.address[at] == end else 0
        if is_after_tracer_call(found, row):
            may_differ |= tracer_scratch(code.program)  # dead for the kernel says so, not since code overwrites it
        same = (first.path, first.stores, first.stopped) == (second.path, second.stores, second.stopped)
        if not same or first.differs(second) & ~may_differ & EVERYTHING:
            wrong.append(f"{start:#x}: {int(dead[row]):#x} dead, {first.differs(second):#x} differ at {end:#x}")
    return wrong


@pytest.mark.parametrize("image", long_where(IMAGES, lambda name: name.startswith(("linux", "gnumach"))))
def test_what_is_dead_may_be_anything(image: str) -> None:
    code = code_of(image)
    assert disagreements(code, code.dead, 1) == []
    # What is not dead matters: neither all of it, nor a register more at each place, could be called so.
    assert len(disagreements(code, np.full_like(code.dead, EVERYTHING), 2)) > PLACES // 2
