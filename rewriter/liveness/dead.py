"""A program and its instructions -> the registers and flags that are dead before each: a trampoline need not save them.

What a kernel or firmware reads without showing it in its code counts as read: an instruction with an entry in the
exception table reads everything, since the handler or the fixup gets all registers. Other faults end in a dump at most,
and interrupts restore what they found. Where the kernel itself writes code, anything may appear, except in the bytes of
the function tracer: there is a nop, or a call that preserves everything that functions are entered with.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.liveness.effects import EVERYTHING, Effector, Effects, Masks, effector
from kinst.rewriter.program import Program
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.columns import holds, is_one_of
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict
from kinst.targets.kernels.exception_table import expected_faults


def dead_before(flow: Dataflow) -> Masks:
    """The registers and flags that are dead before each of some instructions, as bits: the code does the same whatever
    is in them. What the clauses of probes read is not included.

    Returns:
        For each instruction a word in which bit n is register n of the trap frame; `effector` names the bits of flags.
    """
    found, facts = flow.found, flow.program.image.facts
    machine, is_tracer = effector(facts), found.reason == Reason.TRACER_CALL
    effects = _effects(flow, is_tracer, _tracer_scratch(facts, machine))
    live = flow.blocks.live_before(effects)
    # The tracer may clobber its scratch registers before the first real instruction, so nothing can be in them there,
    # nor in front of a call of such a function. That holds on from there, but not where control enters from elsewhere.
    is_entered = holds(found.address, found.target[found.target != 0])
    rows = np.flatnonzero(_after_tracer_calls(found, is_tracer) & ~is_entered)
    scratch = np.full(len(rows), _tracer_scratch(facts, machine), np.uint32)
    _spread(live, found, is_entered, rows, scratch, effects.writes)
    dead: Masks = ~(live | np.uint32(machine.held))
    return dead


def _after_tracer_calls(found: Instructions, is_tracer: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The first instruction after the tracer's call of each function."""
    is_after = np.zeros(len(found), np.bool_)
    is_after[1:] = is_tracer[:-1] & ~is_tracer[1:] & (found.function[1:] == found.function[:-1])
    return is_after


def _spread(
    live: Masks,
    found: Instructions,
    is_entered: NDArray[np.bool_],
    rows: NDArray[np.int64],
    scratch: Masks,
    writes: Masks,
) -> None:
    """Clear what is dead before some rows (`scratch`), and in the rows after them, until it is written or control may
    enter from elsewhere (`is_entered`)."""
    if not rows.size:
        return
    follows = np.append(found.address[:-1] + found.size[:-1] == found.address[1:], False)
    falls = follows & is_one_of(found.flow, (Flow.NEXT, Flow.BRANCH))
    falls &= ~np.append(is_entered[1:], True) & (found.function == np.append(found.function[1:], found.function[-1:]))
    while rows.size:
        live[rows] &= ~scratch
        scratch = scratch & ~writes[rows]
        on = falls[rows] & (scratch != 0)
        rows, scratch = rows[on] + 1, scratch[on]


def _tracer_scratch(facts: ArchFacts, machine: Effector) -> int:
    return sum(1 << facts.registers.index(name) for name in facts.linux.tracer_scratch) | sum(machine.flags.values())


def _effects(flow: Dataflow, is_tracer: NDArray[np.bool_], scratch: int) -> Effects:
    """Those of the code as it runs: what the file does not show reads everything, and the tracer's call, which writes
    to its scratch registers, nothing."""
    is_known = _is_as_it_runs(flow.program, flow.found)
    reads = np.where(is_known, flow.effects.reads, np.uint32(EVERYTHING))
    writes = np.where(is_known, flow.effects.writes, np.uint32(0))
    reads[is_tracer], writes[is_tracer] = 0, scratch
    return Effects(reads, writes)


def _is_as_it_runs(program: Program, found: Instructions) -> NDArray[np.bool_]:
    """Whether the bytes of an instruction in the file show all that it reads."""
    is_code = ~is_one_of(found.reason, (Reason.DATA, Reason.RELOCATED)) & (found.verdict != Verdict.DEFER)
    known: NDArray[np.bool_] = is_code & ~holds(found.address, expected_faults(program.image).instruction)
    return known
