"""Groups of real code in Unicorn, where they are and in trampolines; what is dead is what the rewriter finds."""

import random
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from kinst.rewriter.jumps.decide import decide
from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.liveness.dead import dead_before
from kinst.rewriter.program import instructions_of, open_program
from kinst.rewriter.standalone.code.groups import Groups, groups
from kinst.rewriter.standalone.code.material import Material
from kinst.rewriter.standalone.code.stacks import without_stack
from kinst.rewriter.standalone.code.trampoline import Clock, ImmovableError, Register
from kinst.targets.arch.amd64 import AMD64, GENERAL, RAX, RDI, RSP
from kinst.targets.image import open_image
from kinst.targets.instruction import Flow, Verdict
from kinst.targets.standalone import WORD
from tests.gated import long_after_first
from tests.images import at_hand, real_image
from tests.rewriter.standalone.amd64_runs import APART, GENERATOR, Moved, moved_by
from tests.rewriter.standalone.single import Count, Record, covered_in
from tests.rewriter.tracer_call import is_after_tracer_call

IMAGES = at_hand("u-boot-amd64", "gnumach", "xen-amd64", "linux-amd64")
DRAWN = 150
WORDS = (Register(RDI), Clock(), Register(RAX), Register(RSP))


@cache
def groups_of(image: str, flow: Flow | None = None) -> tuple[Material, Groups]:
    """What jumps would cover if all instructions were sites, or all of a flow."""
    program = open_program(open_image(real_image(image)))
    found = instructions_of(program, np.arange(len(program.functions)))
    chosen = np.isin(found.verdict, (Verdict.COPY, Verdict.EMULATE))
    sites = np.flatnonzero(chosen & ((flow is None) | (found.flow == flow)))
    decisions = decide(program, found, sites)
    dataflow = Dataflow.of(program, found)
    material = Material(program, found, dead_before(dataflow), without_stack(dataflow, GENERATOR))
    return material, groups(found, sites, decisions, AMD64.jump)


def dead_after(material: Material, first: int) -> Callable[[int], int]:
    """What is dead at an address to which the group that begins at a row leads: nothing, where that is not known.
    Behind the room for the kernel's tracer more is, which no code shows."""
    found, traced = material.found, 0
    if is_after_tracer_call(found, first):
        traced = sum(1 << GENERAL.index(name) for name in AMD64.linux.tracer_scratch)

    def dead(address: int) -> int:
        row = int(np.searchsorted(found.address, np.uint64(address)))
        return int(material.dead[row]) | traced if row < len(found) and found.address[row] == address else traced

    return dead


@pytest.mark.parametrize("image", long_after_first(IMAGES))
def test_drawn_groups(image: str) -> None:
    check_drawn(*groups_of(image))


@pytest.mark.parametrize("image", long_after_first(("gnumach", "u-boot-amd64")))
def test_drawn_groups_of_returns(image: str) -> None:
    """Most begin before their return."""
    material, every = groups_of(image, Flow.RETURN)
    assert int((every.count > 1).sum()) > len(every) // 3
    check_drawn(material, every)


def check_drawn(material: Material, every: Groups) -> None:
    """Some of the groups do in a trampoline what they do where they are."""
    choose, wrong, refused = random.Random(1), {}, 0
    for one in choose.sample(range(len(every)), DRAWN):
        group, first = every.take(slice(one, one + 1)), int(every.first[one])
        data = int(material.found.address[first]) + 2 * APART
        record = Record(data, 3, WORD * (2 + len(WORDS)), 7, WORDS)
        counts = ((Count(data + WORD * row), None) for row in range(int(group.count[0])))
        tasks = (choose.choice(both) if first % 2 else record for both in counts)
        covered = covered_in(material, group, tasks)
        try:
            difference = Moved(covered, moved_by(choose)).differences(choose, dead_after(material, first))
        except ImmovableError:
            refused += 1
            continue
        if difference:
            wrong[f"{covered[0].address:#x}"] = difference
    assert wrong == {}
    assert refused <= DRAWN // 50
