"""A program and its instructions -> their effects and basic blocks: made once for all searches."""

from dataclasses import replace

import numpy as np

from kinst.rewriter.liveness.effects import EVERYTHING, Effects, effector
from kinst.rewriter.liveness.search import Blocks
from kinst.rewriter.program import Program, code_in_batches
from kinst.targets.instruction import Flow, Instructions, Reason
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Dataflow:
    """The instructions of whole functions, their effects as the bytes in the file show them, and their blocks.

    The tracer's call passes through whatever the function is entered with: it is no call here.
    """

    program: Program
    found: Instructions
    effects: Effects
    blocks: Blocks

    @classmethod
    def of(cls, program: Program, found: Instructions) -> "Dataflow":
        """`found`: whole functions, ascending by address (`instructions_of`). The more of them, the more is known,
        since calls are followed into them."""
        is_tracer = found.reason == Reason.TRACER_CALL
        passing = replace(found, flow=np.where(is_tracer, np.uint8(Flow.NEXT), found.flow))
        return cls(program, found, _effects(program, found), Blocks.of(passing))


def _effects(program: Program, found: Instructions) -> Effects:
    machine = effector(program.image.facts)
    reads, writes = np.full(len(found), EVERYTHING, np.uint32), np.zeros(len(found), np.uint32)
    for rows, code, offsets in code_in_batches(program, found):
        part = machine.effects(code, offsets, found.size[rows])
        reads[rows], writes[rows] = part.reads, part.writes
    return Effects(reads, writes)
