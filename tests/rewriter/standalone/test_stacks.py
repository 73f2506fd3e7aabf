"""Where the sample's start-up code has no stack yet."""

from pathlib import Path

import numpy as np

from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.naming.select import Names
from kinst.rewriter.program import instructions_of, open_program
from kinst.rewriter.standalone.code.stacks import without_stack
from kinst.rewriter.standalone.code.trampoline import code_generator
from kinst.targets.image import open_image

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
