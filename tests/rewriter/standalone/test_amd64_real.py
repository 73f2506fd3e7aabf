"""Groups of real code in Unicorn, where they are and in trampolines; what is dead is what the rewriter finds."""

import random
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from kinst.rewriter.jumps.decide import decide
from kinst.rewriter.liveness.dead import dead_before
from kinst.rewriter.program import instructions_of, open_program
from kinst.rewriter.standalone.building import Material
from kinst.rewriter.standalone.groups import Group, groups
from kinst.rewriter.standalone.stacks import without_stack
from kinst.rewriter.standalone.trampoline import Clock, Count, Covered, ImmovableError, Record, Register
from kinst.targets.arch.amd64 import AMD64, GENERAL, RAX, RDI, RSP
from kinst.targets.image import open_image
from kinst.targets.instruction import Verdict
from kinst.targets.standalone import WORD
from tests.gated import long_after_first
from tests.images import at_hand, real_image
from tests.rewriter.standalone.amd64_runs import APART, MAKER, Moved, moved_by
from tests.rewriter.tracer_room import is_behind_room

IMAGES = at_hand("u-boot-amd64", "gnumach", "xen-amd64", "linux-amd64")
DRAWN = 150
WORDS = (Register(RDI), Clock(), Register(RAX), Register(RSP))


@cache
def groups_of(image: str) -> tuple[Material, list[Group]]:
    """What jumps would cover if all instructions were sites."""
    program = open_program(open_image(real_image(image)))
    found = instructions_of(program, np.arange(len(program.functions)))
    sites = np.flatnonzero(np.isin(found.verdict, (Verdict.COPY, Verdict.EMULATE)))
    decisions = decide(program, found, sites)
    material = Material(program, found, dead_before(program, found), without_stack(program, found, MAKER))
    return material, list(groups(found, sites, decisions, AMD64.jump))


def dead_behind(material: Material, group: Group) -> Callable[[int], int]:
    """What is dead at an address to which a group leads: nothing, where that is not known. Behind the room for the
    kernel's tracer more is, which no code shows."""
    found, traced = material.found, 0
    if is_behind_room(found, group.first):
        traced = sum(1 << GENERAL.index(name) for name in AMD64.linux.tracer_scratch)

    def dead(address: int) -> int:
        row = int(np.searchsorted(found.address, np.uint64(address)))
        return int(material.dead[row]) | traced if row < len(found) and found.address[row] == address else traced

    return dead


@pytest.mark.parametrize("image", long_after_first(IMAGES))
def test_drawn_groups(image: str) -> None:
    material, every = groups_of(image)
    choose, wrong, refused = random.Random(1), {}, 0
    for group in choose.sample(every, DRAWN):
        data = int(material.found.address[group.first]) + 2 * APART
        record = Record(data, 3, WORD * (2 + len(WORDS)), 7, WORDS)
        covered: list[Covered] = []
        for row in range(group.first, group.first + group.count):
            task = choose.choice((Count(data + WORD * len(covered)), None)) if group.first % 2 else record
            covered.append(material.covered(row, task))
        try:
            difference = Moved(covered, moved_by(choose)).differences(choose, dead_behind(material, group))
        except ImmovableError:
            refused += 1
            continue
        if difference:
            wrong[f"{covered[0].address:#x}"] = difference
    assert wrong == {}
    assert refused <= DRAWN // 50
