"""Decoded functions -> the instructions at which their probes fire: kinst, FBT entry, FBT return."""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.naming.refusals import Refusals
from kinst.rewriter.naming.select import base_name
from kinst.targets.functions.found import Functions
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict
from kinst.targets.values import dataclass

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Decoded:
    """Instructions of some functions, and the range of rows that each function has among them (first, last + 1)."""

    functions: Functions
    instructions: Instructions
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def of(self, rows: Rows) -> tuple[Rows, NDArray[np.int64]]:
        """All instructions of some functions, and for each the position of its function in `rows`."""
        counts = self.last[rows] - self.first[rows]
        position = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(len(position)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.first[rows][position] + within, position

    def starts(self, row: int) -> NDArray[np.int64]:
        """Offsets of the instructions of one function."""
        addresses = self.instructions.address[self.first[row] : self.last[row]]
        starts: NDArray[np.int64] = (addresses - self.functions.address[row]).astype(np.int64)
        return starts

    def around(self, address: int) -> str:
        """``; kinst::f:4 before and kinst::f:9 after it can be probed``: the nearest neighbours of a refused
        instruction. Empty if its function has none."""
        function = self.functions.row_at(address)
        if function is None:
            return ""
        start = int(self.functions.address[function])
        verdicts = self.instructions.verdict[self.first[function] : self.last[function]]
        offsets = self.starts(function)[verdicts != Verdict.REFUSE]
        at = int(np.searchsorted(offsets, address - start))
        near = [(offsets[at - 1 : at], "before"), (offsets[at : at + 1], "after")]
        name = self.functions.names[function]
        found = " and ".join(f"kinst::{name}:{offset[0]} {side}" for offset, side in near if len(offset))
        return f"; {found} it can be probed" if found else ""


def decoded(functions: Functions, instructions: Instructions) -> Decoded:
    """Index instructions, which are in the order of their functions."""
    rows = np.arange(len(functions))
    first = np.searchsorted(instructions.function, rows, "left")
    last = np.searchsorted(instructions.function, rows, "right")
    return Decoded(functions, instructions, first.astype(np.int64), last.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Sites:
    """Chosen instructions, and for each the position of its function among the rows that were asked for."""

    instructions: Rows
    position: NDArray[np.int64]
    refusals: Refusals


def kinst_sites(code: Decoded, rows: Rows) -> Sites:
    """The sites of ``kinst::f:``: every instruction of some functions, less those that are refused."""
    return _split(code, *code.of(rows))


def kinst_sites_at(code: Decoded, rows: Rows, offset: int) -> Sites:
    """The instruction at one offset of each function; a function where no instruction begins there has none."""
    start = code.functions.address[rows] + np.uint64(offset)
    position = np.flatnonzero(np.uint64(offset) < code.functions.size[rows])
    found = np.searchsorted(code.instructions.address, start[position])
    exact = found < code.last[rows[position]]
    exact[exact] = code.instructions.address[found[exact]] == start[position][exact]
    return _split(code, found[exact], position[exact])


def entry_sites(code: Decoded, rows: Rows) -> Sites:
    """The first instruction of each function that can be probed.

    Only landing pads and the call of the kernel's function tracer (fentry, or the nops of -fpatchable-function-entry)
    are skipped: control always passes through them, so the probe still fires once per call. If nothing after them can
    be probed, or if the function branches back to it in a loop, the tracer's call itself is probed: it is deferred.
    """
    first, last = code.first[rows], code.last[rows]
    position = np.flatnonzero(first < last)
    at = first[position]
    # `tracer`: the first instruction of the tracer's call in each function, -1 where there is none.
    tracer = np.full(len(at), -1)
    moving = np.ones(len(at), np.bool_)
    while moving.any():
        moving &= stepped_over(code.instructions, at) & (at + 1 < last[position])
        tracer = np.where(moving & (tracer < 0) & (code.instructions.verdict[at] == Verdict.DEFER), at, tracer)
        at += moving
    # In a loop the probe would fire once per iteration, and FBT promises once per call.
    is_loop = (at > first[position]) & _is_among(code.instructions.address[at], _branched_to(code, rows))
    is_refused = (code.instructions.verdict[at] == Verdict.REFUSE) | is_loop
    is_unsure = is_refused | (code.instructions.verdict[at] == Verdict.DEFER)  # paravirt calls become sti, for example
    at, is_refused = np.where(is_unsure & (tracer >= 0), tracer, at), is_refused & (tracer < 0)
    good = ~is_refused
    refused = at[is_refused]
    inner = np.where(is_loop[is_refused], np.uint8(Reason.LOOP_HEAD), code.instructions.reason[refused])
    excluded = inner == Reason.EXCLUDED_FUNCTION
    reason = np.where(excluded, inner, np.uint8(Reason.NO_PROLOGUE))
    refusals = _refusals(code.instructions, refused, reason, np.where(excluded, np.uint8(0), inner))
    return Sites(at[good], position[good], refusals)


def _is_among(address: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which addresses are among others, of which there may be many: np.isin takes ten times as long."""
    ordered = np.append(np.sort(others), np.uint64(0))
    place = np.searchsorted(ordered[:-1], address)
    result: NDArray[np.bool_] = (place < len(others)) & (ordered[place] == address)
    return result


def _branched_to(code: Decoded, rows: Rows) -> NDArray[np.uint64]:
    """Where direct branches of functions go within their function."""
    found, position = code.of(rows)
    target, flow = code.instructions.target[found], code.instructions.flow[found]
    within = target - code.functions.address[rows][position] < code.functions.size[rows][position]
    result: NDArray[np.uint64] = target[((flow == Flow.JUMP) | (flow == Flow.BRANCH)) & within]
    return result


def stepped_over(found: Instructions, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which instructions an entry may come after: landing pads, and the call of the function tracer."""
    reason, flow = found.reason[at], found.flow[at]
    # After boot it is a call or a nop; an instruction that leaves the function is no part of it.
    passes = (flow == Flow.NEXT) | (flow == Flow.CALL)
    result: NDArray[np.bool_] = (reason == Reason.LANDING_PAD) | ((reason == Reason.TRACER_CALL) & passes)
    return result


def return_sites(code: Decoded, rows: Rows) -> Sites:
    """Every way out of each function: returns, and tail calls.

    Whether a conditional or an indirect jump leaves the function shows only when its next PC is known. The runtime
    computes it for an emulated one, and fires only then; a copied one runs unobserved in its trampoline, so it is
    refused.
    """
    found, position = code.of(rows)
    flow = code.instructions.flow[found]
    leaves = flow == Flow.RETURN
    direct = (flow == Flow.JUMP) | (flow == Flow.BRANCH)
    leaves[direct] = _leaves(code, found[direct])
    leaves |= flow == Flow.INDIRECT_JUMP
    return _split(code, found[leaves], position[leaves], at_return=True)


def _leaves(code: Decoded, at: Rows) -> NDArray[np.bool_]:
    """Which direct jumps leave their function. Jumps between the parts into which the compiler split one (f, f.cold) do
    not.

    An alternative that jumps to code in no function stays in its own, out of line: static_cpu_has() of Linux tests
    there and jumps back.
    """
    functions = code.functions
    # Unsigned: a target below the start wraps round, and is outside as well.
    own, target = code.instructions.function[at], code.instructions.target[at]
    outside = target - functions.address[own] >= functions.size[own]
    other = np.searchsorted(functions.address, target, "right") - 1
    inside_other = (other >= 0) & (target - functions.address[other] < functions.size[other])
    is_detour = ~inside_other & (code.instructions.reason[at] == Reason.PATCHED_AT_BOOT)
    leaves: NDArray[np.bool_] = outside & ~is_detour
    between = np.flatnonzero(leaves & inside_other)
    names = functions.names
    pairs = zip(own[between].tolist(), other[between].tolist(), strict=True)
    leaves[between] = [base_name(names[here]) != base_name(names[there]) for here, there in pairs]
    return leaves


def _split(code: Decoded, at: Rows, position: NDArray[np.int64], *, at_return: bool = False) -> Sites:
    found = code.instructions
    verdict, reason = found.verdict[at], found.reason[at]
    if at_return:
        flow = found.flow[at]
        unseen = (verdict == Verdict.COPY) & ((flow == Flow.BRANCH) | (flow == Flow.INDIRECT_JUMP))
        verdict, reason = verdict.copy(), reason.copy()
        verdict[unseen], reason[unseen] = Verdict.REFUSE, Reason.UNSEEN_TAIL_CALL
    good = verdict != Verdict.REFUSE
    if good.all():
        return Sites(at, position, _refusals(found, at[:0], reason[:0], reason[:0]))
    refused = at[~good]
    return Sites(at[good], position[good], _refusals(found, refused, reason[~good], np.zeros(len(refused), np.uint8)))


def _refusals(found: Instructions, at: Rows, reason: NDArray[np.uint8], inner: NDArray[np.uint8]) -> Refusals:
    return Refusals(found.address[at], found.function[at], reason, inner)
