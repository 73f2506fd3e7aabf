"""What the kernel's tracer does not preserve, where functions call others that it may be called in."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.liveness.dead import dead_before
from kinst.rewriter.program import Program, instructions_of
from kinst.targets.arch.amd64 import AMD64, GENERAL
from kinst.targets.instruction import Reason
from tests.rewriter.programs import STEP, TEXT, program, small

NOP = ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00"
FUNCTIONS = {
    "caller": "mov %rsi, %rdi; call {traced}; ret",
    "traced": f"{NOP}; mov (%rdi), %rax; ret",
    "around": "mov %rsi, %rdi; call {inner}; ret",
    "inner": "call *%rax; ret",
}
SCRATCH = sum(1 << GENERAL.index(name) for name in AMD64.linux.tracer_scratch)


def dead_in(kernel: Program, function: str) -> list[int]:
    """The tracer's registers that are dead before each instruction of a function."""
    found = instructions_of(kernel, np.arange(len(kernel.functions)))
    start = TEXT + STEP * list(FUNCTIONS).index(function)
    own = (found.address >= start) & (found.address < start + STEP)
    dead: list[int] = (dead_before(Dataflow.of(kernel, found)) & SCRATCH)[own].tolist()
    return dead


def test_nothing_is_in_its_registers_where_a_traced_function_is_called(tmp_path: Path) -> None:
    kernel = program(tmp_path, small(functions=FUNCTIONS))
    room = np.array([[TEXT + STEP, len(NOP.split(",")), Reason.TRACER_CALL]], np.uint64)
    traced = replace(kernel, patched_at_boot=room)
    assert dead_in(kernel, "caller") == [0, 0, 0]
    assert dead_in(traced, "caller") == [SCRATCH, SCRATCH, 0]  # the caller's caller is not known
    assert dead_in(traced, "around") == [0, 0, 0]
    assert dead_in(traced, "traced") == [SCRATCH, SCRATCH, SCRATCH]
