"""Where the sample's start-up code has no stack yet."""

from pathlib import Path

import numpy as np

from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.naming.select import Names
from kinst.rewriter.program import instructions_of, open_program
from kinst.rewriter.standalone.code.stacks import without_stack
from kinst.rewriter.standalone.code.trampoline import code_generator
from kinst.targets.image import open_image
from tests.images import real_image

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-arm64.elf"


def test_code_that_comes_to_load_the_stack_pointer_has_none() -> None:
    """Firmware starts further CPUs where no code leads: what is called from there loads the stack pointer."""
    program = open_program(open_image(SAMPLE))
    found = instructions_of(program, np.arange(len(program.functions)))
    no_stack = without_stack(Dataflow.of(program, found), code_generator(program.image.facts))
    start, enter, main = (
        no_stack[np.isin(found.function, Names(program.functions).select_exact(name).rows)]
        for name in ("secondary_start", "enter", "cpu_main")
    )
    assert start[:3].all()
    assert enter.all()
    assert not main[:8].any()


def test_code_that_a_computed_jump_may_lead_to_has_none_either() -> None:
    """Xen turns the MMU on and jumps to its link addresses: to what follows, and to what loads the stack pointer, of
    which no instruction tells that control comes there."""
    program = open_program(open_image(real_image("xen-arm64")))
    found = instructions_of(program, np.arange(len(program.functions)))
    no_stack = without_stack(Dataflow.of(program, found), code_generator(program.image.facts))
    for name in ("remove_identity_mapping", "zero_bss"):
        assert no_stack[np.isin(found.function, Names(program.functions).select_exact(name).rows)][0]
    starts = np.searchsorted(found.address, program.functions.address)
    assert no_stack[starts].mean() < 0.1
