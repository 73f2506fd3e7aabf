"""Code of real arm64 and riscv64 images, from sites drawn at random: in place, and displaced by what is made of it."""

import random
from collections import Counter
from functools import partial

import numpy as np
import pytest

from kinst.rewriter.arch.arm64 import DISSECTOR as ARM64_DISSECTOR
from kinst.rewriter.arch.dissector import Dissector
from kinst.rewriter.arch.riscv64 import DISSECTOR as RISCV64_DISSECTOR
from kinst.rewriter.jumps.decide import decide
from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.liveness.dead import dead_before
from kinst.rewriter.liveness.effects import Masks, effector
from kinst.rewriter.program import instructions_of, open_program
from kinst.rewriter.standalone.code.groups import groups
from kinst.rewriter.standalone.code.material import Material
from kinst.rewriter.standalone.code.stacks import without_stack
from kinst.rewriter.standalone.code.trampoline import ImmovableError, code_generator
from kinst.targets.image import open_image
from kinst.targets.instruction import Flow, Instructions, Verdict
from tests.gated import long_where
from tests.images import at_hand, real_image
from tests.rewriter.standalone.displaced import Machine, Place, check_counts, counters, drawn_state
from tests.rewriter.standalone.single import covered_in
from tests.rewriter.tracer_call import is_after_tracer_call
from tests.runtime.trap.arch.risc_unicorn import ARM64_MODEL, RISCV64_MODEL, Model

IMAGES = at_hand("opensbi-1.6", "u-boot-riscv64", "u-boot-arm64", "xen-arm64", "linux-arm64", "linux-riscv64")
GATE = ("opensbi-1.6", "u-boot-arm64")
PARTS: dict[str, tuple[Model, Dissector, int]] = {
    "arm64": (ARM64_MODEL, ARM64_DISSECTOR, 128),
    "riscv64": (RISCV64_MODEL, RISCV64_DISSECTOR, 64),
}
DRAWN = 100
AWAY, PAGE = 0x4_0000, 4096


def dead_at(found: Instructions, dead: Masks, besides: int, address: int) -> int:
    """What is dead where control goes, which may not be known."""
    row = int(np.searchsorted(found.address, np.uint64(address)))
    return besides | (int(dead[row]) if row < len(found) and found.address[row] == address else 0)


DRAWN_OF = [(image, flow) for image in IMAGES for flow in (None, Flow.RETURN)]


@pytest.mark.parametrize("drawn", long_where(DRAWN_OF, lambda one: one[0] not in GATE), ids=str)
def test_what_is_displaced_does_what_it_did(drawn: tuple[str, Flow | None]) -> None:
    image, only = drawn
    program = open_program(open_image(real_image(image)))
    facts = program.image.facts
    model, dissector, vector_bits = PARTS[facts.name]
    machine = Machine(model, dissector, effector(facts), code_generator(facts), vector_bits)
    found = instructions_of(program, np.arange(len(program.functions)))
    chosen = np.isin(found.verdict, (Verdict.COPY, Verdict.EMULATE))
    sites = np.flatnonzero(chosen & ((only is None) | (found.flow == only)))
    flow = Dataflow.of(program, found)
    material = Material(program, found, dead_before(flow), without_stack(flow, machine.generator))
    scratch = sum(1 << facts.registers.index(name) for name in facts.linux.tracer_scratch)
    every = groups(found, sites, decide(program, found, sites), facts.jump)
    choose, outcomes = random.Random(1), Counter[str]()
    for one in choose.sample(range(len(every)), DRAWN):
        first = int(every.first[one])
        site = int(found.address[first])
        place = Place(site, site + AWAY, (site + 2 * AWAY) & -PAGE, 0)
        group = covered_in(material, every.take(slice(one, one + 1)), counters(place))
        traced = scratch if is_after_tracer_call(found, first) else 0
        dead = partial(dead_at, found, material.dead, traced)
        try:
            is_same = check_counts(machine, group, place, drawn_state(machine, choose), dead)
        except ImmovableError as error:
            outcomes[str(error)] += 1
        else:
            outcomes["same" if is_same else "faults"] += 1
    assert outcomes["same"] > DRAWN * 0.9
    assert outcomes["faults"] < DRAWN * 0.1
