"""Spans of code without symbols -> the functions in them, each with the evidence for it.

Certain starts come first: the entry point, FDEs, the targets of direct calls. Between them, code that nothing falls
into and no branch crosses must begin another function; it is taken if a pointer leads to it or if it begins as
functions do. A jump target alone is not enough: it is a label of the function before it. A function ends where its code
cannot be reached any further, so that data after it in .text is never taken for code. What was found is then weighed
(`kinst.targets.functions.weighing`).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import is_in, is_one_of, unique, unique_rows
from kinst.targets.functions.address_uses import AddressUses, Use, UsesOf, address_uses
from kinst.targets.functions.called_by_loader import called_by_loader
from kinst.targets.functions.code_pointers import code_pointers
from kinst.targets.functions.evidence import Evidence
from kinst.targets.functions.startup import entry_point
from kinst.targets.functions.sweeping import Sweep, Swept, sweep_spans
from kinst.targets.functions.weighing import Candidates, described_regions, evidence_of, strict_spans, weighed
from kinst.targets.image import Image
from kinst.targets.instruction import Flow
from kinst.targets.patterns import matches
from kinst.targets.spans import Spans, covered, inside, united
from kinst.targets.values import dataclass

_ROUNDS: Final = 4  # of sweeping again because a start was inside an instruction of the last sweep
_CALL_ROUNDS: Final = 4  # of looking for calls in functions that only calls vouch for

# Addresses (sorted, unique) by the evidence for them; the first evidence of an address counts.
Starts = dict[Evidence, NDArray[np.uint64]]


@dataclass(frozen=True, slots=True)
class Discovered:
    """Columns in address order: [address, end) is code, found by `evidence`."""

    address: NDArray[np.uint64]
    end: NDArray[np.uint64]
    evidence: NDArray[np.uint8]
    strict: Spans  # where symbols and FDEs cover nearly all code


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an image's code before it is examined. Addresses ascend.

    Attributes:
        frames: (n, 2) address and size of what FDEs describe (`frame_ranges`).
        signal_frames: the same of signal frames: the sweep decides where their code begins.
        starts: where functions certainly start; they come out as SYMBOL.
        hints: addresses with a label, which may be code or not; taken (as LABEL) if they look like a start.
        described: (n, 2) start and end of what symbols and FDEs say is code, in any order.
    """

    frames: NDArray[np.uint64]
    signal_frames: NDArray[np.uint64]
    starts: NDArray[np.uint64]
    hints: NDArray[np.uint64]
    described: Spans


def discover(image: Image, spans: Spans, sweep: Sweep, uses_of: UsesOf, known: Known) -> Discovered:
    """The functions in `spans`.

    Args:
        image: the image.
        spans: (n, 2) start and end of code of which nothing is known, ascending.
        sweep: the machine's `Dissector.dissect`.
        uses_of: what its code does with addresses.
        known: what is known.
    """
    # Sweeps begin at certain starts, so that data before one puts none of its code out of step.
    certain = _certain_starts(image, spans, known.frames) | {Evidence.SYMBOL: _in_spans(known.starts, spans)}
    swept = sweep_spans(image, _split(spans, _all(certain)), sweep)
    described = united(known.described)
    strict = strict_spans(image, swept, described_regions(image, described), described)
    swept, certain = _sweep_to_fixed_point(image, spans, certain, sweep, swept, (strict, described))
    if not len(swept):
        return _nothing()
    settled = _settled(swept, known.signal_frames)
    frames = unique_rows(np.concatenate([known.frames, settled]))
    certain[Evidence.FDE] = unique(np.concatenate([certain[Evidence.FDE], settled[:, 0]]))
    uses = _uses(image, swept, certain, uses_of)
    trust = _Trust.of(swept, strict, described)
    found = _weighed_starts(image, swept, certain, frames, trust, known.hints, uses)
    return Discovered(found.address, found.end, found.evidence, strict)


def _weighed_starts(
    image: Image,
    swept: Swept,
    starts: Starts,
    frames: NDArray[np.uint64],
    trust: "_Trust",
    hints: NDArray[np.uint64],
    uses: AddressUses,
) -> Candidates:
    """The starts, and those that are likely and that nothing contradicts. What these call are starts, too."""
    counting = uses.by_rows(trust.rows(starts))
    found = _add_likely(image, swept, starts, frames, trust, hints, counting)
    bounded = _bounded(swept, found, frames)
    # Only reads of trusted code count: a table that decodes seems to read everywhere.
    kept = weighed(image, swept, trust.part, bounded, trust.strict, counting.of(Use.READ))
    is_done = len(kept) == len(bounded.address)
    found = {kind: address[is_in(address, kept)] for kind, address in found.items()}
    # A function that is accepted makes its calls count, which may lead to more functions.
    for _ in range(_CALL_ROUNDS if len(trust.rest) else 0):
        calls = trust.calls(trust.rows(found))
        more = unique(np.concatenate([found[Evidence.CALL], calls[swept.rows_at(calls) >= 0]]))
        if len(more) == len(found[Evidence.CALL]):
            break
        found, is_done = found | {Evidence.CALL: more}, False
    return bounded if is_done else _bounded(swept, found, frames)


def _uses(image: Image, swept: Swept, starts: Starts, uses_of: UsesOf) -> AddressUses:
    """What code does with addresses at which no function certainly starts."""
    certain = _all(starts)

    def wanted(address: NDArray[np.uint64]) -> NDArray[np.bool_]:
        found = image.is_code(address)
        found[found] = ~is_in(address[found], certain)
        return found

    return address_uses(image, swept.instructions, uses_of, wanted)


@dataclass(frozen=True, slots=True)
class _Trust:
    """Whose calls and reads count: where symbols and FDEs cover nearly all code, only those of functions."""

    swept: Swept
    strict: Spans
    base: NDArray[np.bool_]  # rows that certainly count
    rest: NDArray[np.intp]  # the others
    part: Swept  # these
    # Rows of calls, without those shortly after bytes that do not decode: out of step, they are chance.
    calling: NDArray[np.intp]

    @classmethod
    def of(cls, swept: Swept, strict: Spans, described: Spans) -> "_Trust":
        # Outside strict spans every row counts; inside them only what symbols and FDEs describe, until a function is
        # found.
        base = ~inside(strict, swept.address) | inside(described, swept.address)
        rest = np.flatnonzero(~base)
        is_call = (swept.instructions.flow == Flow.CALL) & ~swept.is_junk
        return cls(swept, strict, base, rest, swept.take(rest), np.flatnonzero(is_call & ~_follows(swept.is_junk, 8)))

    def rows(self, starts: Starts) -> NDArray[np.bool_]:
        """The rows that count if these are functions."""
        found = self.base.copy()
        address = _all(starts)
        address = address[is_in(address, self.part.address)] if len(self.rest) else address[:0]
        if len(address):
            end = reachable_ends(self.part, address)
            row = np.searchsorted(address, self.part.address, "right") - 1
            found[self.rest[(row >= 0) & (self.part.address < end[row])]] = True
        return found

    def calls(self, trusted: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Where the calls of some rows go."""
        return unique(self.swept.instructions.target[self.calling[trusted[self.calling]]])


def _settled(swept: Swept, frames: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Signal frames without the byte that may precede their code: they begin at an instruction that is no padding.

    A frame with no instruction at either place contradicts the code, and is dropped.
    """
    end = frames.sum(axis=1)
    code = swept.address[~swept.is_padding & ~swept.is_junk]
    start = np.where(is_in(frames[:, 0], code), frames[:, 0], frames[:, 0] + np.uint64(1))
    return np.stack([start, end - start], axis=1)[is_in(start, code)]


def _nothing() -> Discovered:
    none = np.zeros(0, np.uint64)
    return Discovered(none, none, np.zeros(0, np.uint8), none.reshape(-1, 2))


def _certain_starts(image: Image, spans: Spans, frames: NDArray[np.uint64]) -> Starts:
    entry = [address for address in (entry_point(image), *called_by_loader(image)) if address is not None]
    return {
        Evidence.FDE: _in_spans(frames[:, 0], spans),
        Evidence.ENTRY_POINT: _in_spans(np.array(entry, np.uint64), spans),
    }


def _in_spans(address: NDArray[np.uint64], spans: Spans) -> NDArray[np.uint64]:
    """The addresses that are in `spans`, sorted and unique."""
    address = unique(address)
    return address[covered(spans, address)]


def _sweep_to_fixed_point(
    image: Image, spans: Spans, starts: Starts, sweep: Sweep, swept: Swept, covers: tuple[Spans, Spans]
) -> tuple[Swept, Starts]:
    """Sweep, from every certain start anew, until the certain starts and all calls lead to swept instructions.

    Data in .text puts a linear sweep of amd64 and of compressed riscv64 code out of step for a while; a call to what
    follows corrects it. `covers` are what is strict and what is described (see `_Trust`).
    """
    for _ in range(_ROUNDS):
        starts = _with_calls(_Trust.of(swept, *covers), spans, starts)
        if (swept.rows_at(_all(starts)) >= 0).all():
            break  # all begin at an instruction
        # A start inside an instruction shows that the sweep was out of step there: it begins anew at that start.
        swept = sweep_spans(image, _split(spans, _all(starts)), sweep)
    return swept, {kind: found[swept.rows_at(found) >= 0] for kind, found in starts.items()}


def _all(starts: Starts) -> NDArray[np.uint64]:
    return unique(np.concatenate([np.zeros(0, np.uint64), *starts.values()]))


def _split(spans: Spans, at: NDArray[np.uint64]) -> Spans:
    """`spans` cut at some addresses inside them."""
    begins = unique(np.concatenate([spans[:, 0], at]))
    ends = spans[np.searchsorted(spans[:, 0], begins, "right") - 1, 1] if len(spans) else begins
    return np.stack([begins, np.minimum(np.append(begins[1:], ends[-1:]), ends)], axis=1)


def _with_calls(trust: _Trust, spans: Spans, starts: Starts) -> Starts:
    """The starts, and the targets of the calls that count."""
    starts = starts | {Evidence.CALL: spans[:0, 0]}
    for _ in range(_CALL_ROUNDS):
        calls = _in_spans(trust.calls(trust.rows(starts)), spans)
        if len(calls) == len(starts[Evidence.CALL]):
            break
        starts[Evidence.CALL] = calls
        if not len(trust.rest):
            break
    return starts


def _marked(swept: Swept, address: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Rows at some addresses."""
    marked, rows = np.zeros(len(swept), np.bool_), swept.rows_at(address)
    marked[rows[rows >= 0]] = True
    return marked


def _follows(marked: NDArray[np.bool_], distance: int) -> NDArray[np.bool_]:
    """Rows that have a marked row at most `distance` rows before them."""
    count = np.concatenate([np.zeros(1, np.int64), np.cumsum(marked)])
    rows = np.arange(len(marked))
    follows: NDArray[np.bool_] = count[rows] > count[np.maximum(rows - distance, 0)]
    return follows


def _add_likely(
    image: Image,
    swept: Swept,
    starts: Starts,
    frames: NDArray[np.uint64],
    trust: _Trust,
    hints: NDArray[np.uint64],
    uses: AddressUses,
) -> Starts:
    """Starts that are only likely, in two rounds: those of the first make clearer what belongs to which function."""
    kept = np.concatenate([uses.of(Use.KEPT), uses.of(Use.CALLED)])
    # A pointer may also lead to a label inside a function (a jump table): `bounds` below separates those.
    pointed = _marked(swept, code_pointers(image)) | _marked(swept, kept[covered(trust.strict, kept)])
    named = _marked(swept, hints)
    shaped = matches(swept.heads, image.facts.code_shape.prologues)
    called = _marked(swept, trust.calls(~trust.base))  # by code that nothing vouches for
    described = _inside_frames(swept, frames) | swept.is_junk
    lead = _Lead.of(swept, starts[Evidence.CALL])
    if lead.tracer:
        shaped |= (swept.instructions.flow == Flow.CALL) & (swept.instructions.target == np.uint64(lead.tracer))
    # Without a known beginning, only alignment tells a function from code that the kernel jumps to through tables of
    # its own (static keys), and a jump is no beginning.
    plain = lead.is_aligned(swept.address) & ~is_one_of(swept.instructions.flow, (Flow.JUMP, Flow.INDIRECT_JUMP))
    doubtful = _follows(swept.is_junk, 8) & ~lead.is_aligned(swept.address)  # chance, in a table
    # In code that nothing vouches for branches prove nothing: they may be data.
    sure = ~trust.base & ~described & ~swept.is_padding
    for _ in range(2):
        bounds = _Boundaries.of(swept, _all(starts), lead.tracer)
        free = bounds.is_free & ~described
        likely = free & ~doubtful & ~swept.is_padding & (shaped | called | (bounds.is_unreachable & plain))
        starts = starts | {
            Evidence.LABEL: swept.address[free & named & bounds.after_end & ~swept.is_padding],
            Evidence.POINTER: swept.address[
                pointed & (free & (bounds.after_end | shaped) | sure & bounds.after_terminator)
            ],
        }
        starts = starts | {Evidence.PROLOGUE: lead.starts(swept, np.flatnonzero(likely), _all(starts))}
    return starts


@dataclass(frozen=True, slots=True)
class _Lead:
    """What compilers leave for a tracer where functions start: nops (-fpatchable-function-entry) or a call (-mfentry).

    The nops look like the padding before them. How many there are (often none), and how functions are aligned, is seen
    on the functions that are called.
    """

    size: int
    alignment: int
    tracer: int  # what most functions call first; 0: nothing

    @classmethod
    def of(cls, swept: Swept, called: NDArray[np.uint64]) -> "_Lead":
        rows = np.searchsorted(swept.address, called)
        if not len(rows):
            return cls(0, 1, 0)
        code = np.where(swept.is_padding, len(swept), np.arange(len(swept)))
        # For each row the first row from it on that is no padding.
        following = np.minimum.accumulate(code[::-1])[::-1]
        rows = rows[following[rows] < len(swept)]
        sizes, counts = np.unique(swept.address[following[rows]] - swept.address[rows], return_counts=True)
        most = int(np.argmax(counts)) if len(counts) else 0
        size = int(sizes[most]) if len(counts) and 2 * counts[most] > len(rows) else 0
        # Not all: hand-written functions are aligned as instructions are.
        fits = [step for step in (16, 8, 4, 2) if np.mean(called % np.uint64(step) == 0) > 0.85]
        return cls(size, fits[0] if fits else 1, cls._tracer(swept, called))

    @staticmethod
    def _tracer(swept: Swept, called: NDArray[np.uint64]) -> int:
        rows = np.searchsorted(swept.address, called)
        first = rows[swept.instructions.flow[rows] == Flow.CALL]
        targets, counts = np.unique(swept.instructions.target[first], return_counts=True)
        most = int(np.argmax(counts)) if len(counts) else 0
        return int(targets[most]) if len(counts) and 4 * counts[most] > len(rows) else 0

    def is_aligned(self, address: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which addresses are aligned as functions are, if that says anything at all."""
        if self.alignment < 8:
            return np.zeros(len(address), np.bool_)
        step, size = np.uint64(self.alignment), np.uint64(self.size)
        aligned: NDArray[np.bool_] = (address % step == 0) | ((address - size) % step == 0)
        return aligned

    def starts(self, swept: Swept, rows: NDArray[np.intp], known: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Where the functions start whose first real instructions are `rows`; none where a known start leads there."""
        before = np.append(np.uint64(0), swept.end)[_last_code(swept)[rows] + 1]  # where the padding begins
        address = swept.address[rows]
        last_known = np.append(np.uint64(0), known)[np.searchsorted(known, address, "right")]
        earlier = address - np.uint64(self.size)
        is_lead = (earlier >= before) & (
            (earlier % np.uint64(self.alignment) == 0) | (address % np.uint64(self.alignment) != 0)
        )
        is_new = (last_known < before) | (last_known == 0)
        found: NDArray[np.uint64] = np.where(is_lead, earlier, address)[is_new | (last_known == address)]
        return found


def _inside_frames(swept: Swept, frames: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Rows inside what an FDE describes: no function begins there unless it is called."""
    if not len(frames):
        return np.zeros(len(swept), np.bool_)
    row = np.maximum(np.searchsorted(frames[:, 0], swept.address, "left") - 1, 0)
    inside: NDArray[np.bool_] = (swept.address > frames[row, 0]) & (swept.address - frames[row, 0] < frames[row, 1])
    return inside


@dataclass(frozen=True, slots=True)
class _Boundaries:
    """For each instruction: can a function begin here?"""

    after_terminator: NDArray[np.bool_]  # what comes before (except padding) ends in a terminator, not in a call
    is_free: NDArray[np.bool_]  # no branch of the function before crosses it, and nothing falls into it
    after_end: NDArray[np.bool_]  # both
    is_unreachable: NDArray[np.bool_]  # after_end, and the function before has no jump table that could lead here

    @classmethod
    def of(cls, swept: Swept, starts: NDArray[np.uint64], tracer: int) -> "_Boundaries":
        before = _last_code(swept)
        piece = np.cumsum(~_contiguous(swept))
        flow = swept.instructions.flow
        known = (before >= 0) & (piece[np.maximum(before, 0)] == piece)
        after_end = ~known | swept.is_terminator[np.maximum(before, 0)]
        after_call = known & is_one_of(flow[np.maximum(before, 0)], (Flow.CALL, Flow.INDIRECT_CALL))
        # A call that never returns may end a function; the tracer's returns, and a prologue follows.
        # Without this every prologue after a call of fentry would seem to begin a function.
        after_call &= swept.instructions.target[np.maximum(before, 0)] != np.uint64(tracer)
        is_free = (after_end | after_call) & ~_crossed(swept, starts)
        owner = _owners(swept, np.searchsorted(swept.address, starts))
        tables = np.cumsum(flow == Flow.INDIRECT_JUMP)
        begins = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
        first = np.maximum.accumulate(np.where(begins, np.arange(len(owner)), 0))
        # Indirect jumps since the last certain start: one may be a switch whose cases seem unreachable.
        has_table = tables > tables[first] - (flow[first] == Flow.INDIRECT_JUMP)
        return cls(after_end, is_free, is_free & after_end, is_free & after_end & ~has_table)


def _last_code(swept: Swept) -> NDArray[np.intp]:
    """For each row the last row before it that is no padding; -1: none."""
    rows = np.where(swept.is_padding, -1, np.arange(len(swept)))
    last = np.maximum.accumulate(rows)
    return np.append(-1, last[:-1])


def _contiguous(swept: Swept) -> NDArray[np.bool_]:
    """Whether the row before ends where this one starts."""
    return np.append(False, swept.end[:-1] == swept.address[1:])


def _crossed(swept: Swept, starts: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Rows that a branch jumps over, or jumps forward to, within the code that belongs to one certain start.

    Branches between starts mean nothing: tail calls, and jumps to the distant cold part of a function. A jump back to
    the start itself is a tail call as well, of one of the functions that may follow.
    """
    flow, target = swept.instructions.flow, swept.instructions.target
    rows = np.flatnonzero(is_one_of(flow, (Flow.JUMP, Flow.BRANCH)) & ~swept.is_junk)
    to = np.searchsorted(swept.address, target[rows])
    owner = np.searchsorted(starts, swept.address[rows], "right") == np.searchsorted(starts, target[rows], "right")
    tail_call = (flow[rows] == Flow.JUMP) & is_in(target[rows], starts)
    real = owner & ~tail_call & (to < len(swept))
    real[real] = swept.address[to[real]] == target[rows[real]]
    low, high = np.minimum(rows, to)[real], np.maximum(rows, to)[real]
    change = np.zeros(len(swept) + 2, np.int64)
    # Between the lower of branch and target and the upper one no function begins.
    np.add.at(change, low + 1, 1)
    np.add.at(change, high + 1, -1)
    crossed: NDArray[np.bool_] = np.cumsum(change)[: len(swept)] > 0
    return crossed


def _bounded(swept: Swept, starts: Starts, frames: NDArray[np.uint64]) -> Candidates:
    address = _all(starts)
    evidence = evidence_of(address, starts)
    end = _ends(swept, address, frames)
    sure = is_one_of(evidence, (Evidence.FDE, Evidence.ENTRY_POINT, Evidence.CALL))
    is_code = (end > address) & (sure | ~_runs_into_junk(swept, end))
    return Candidates(address, end, evidence).take(is_code)


def _ends(swept: Swept, address: NDArray[np.uint64], frames: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Where each function ends: with its FDE, else as `reachable_ends`."""
    end = reachable_ends(swept, address)
    framed = frames[is_in(frames[:, 0], address)]
    end[np.searchsorted(address, framed[:, 0])] = framed[:, 0] + framed[:, 1]
    return np.minimum(end, np.append(address[1:], np.uint64(2**64 - 1)))


def _runs_into_junk(swept: Swept, end: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Ends after which control would run on into bytes that are no code: a table that happens to decode for a
    while."""
    following = np.minimum(np.searchsorted(swept.address, end), len(swept) - 1)
    last = np.maximum(following - 1, 0)
    leaves = swept.is_terminator | is_one_of(swept.instructions.flow, (Flow.CALL, Flow.INDIRECT_CALL))
    into: NDArray[np.bool_] = (swept.address[following] == end) & swept.is_junk[following] & ~leaves[last]
    return into


def reachable_ends(swept: Swept, address: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Where each function that starts at one of `address` ends, at the latest at the next one.

    That is after the first terminator that no branch of the function passes, or before the first bytes that are no
    code. After an indirect jump, which may go anywhere in the function, only the latter counts, less padding.
    """
    if not len(address) or not len(swept):
        return address.copy()
    first = np.searchsorted(swept.address, address)
    owner = _owners(swept, first) - 1
    flow, target = swept.instructions.flow, swept.instructions.target
    rows = np.flatnonzero(is_one_of(flow, (Flow.JUMP, Flow.BRANCH)))
    rows = rows[target[rows] > swept.address[rows]]
    rows = rows[np.searchsorted(address, target[rows], "right") - 1 == owner[rows]]
    # `reach`: the furthest target of the branches so far. A terminator before it does not end the function.
    reach = swept.address.copy()
    reach[rows] = target[rows]
    reach = np.maximum.accumulate(reach)
    indirect = np.cumsum(flow == Flow.INDIRECT_JUMP)
    base = np.where(first > 0, indirect[np.maximum(first, 1) - 1], 0)
    # After an indirect jump of the same function a terminator proves nothing: a case of a switch may follow it.
    jumped = indirect > base[np.maximum(owner, 0)]
    stops = swept.is_terminator & ~swept.is_junk & (reach < swept.end) & ~jumped
    breaks = swept.is_junk | ~_contiguous(swept)
    # A function may begin right after bytes that are no code.
    breaks[first[first < len(swept)]] = False
    last = np.append(first[1:], len(swept))
    stop = _first_marked(stops, first, last)  # its end is the function's end
    broken = _first_marked(breaks, first, last)  # its start is
    limit = np.minimum(np.minimum(stop + 1, broken), last)
    code = np.maximum.accumulate(np.where(swept.is_padding | swept.is_junk, -1, np.arange(len(swept))))
    end = swept.end[np.maximum(code[np.maximum(limit - 1, 0)], 0)]
    return np.maximum(np.where(swept.is_junk[np.minimum(first, len(swept) - 1)], address, end), address)


def _owners(swept: Swept, first: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each row, how many of the starts, given by their first rows, are at or before it."""
    found: NDArray[np.intp] = np.cumsum(np.bincount(first, minlength=len(swept))[: len(swept)])
    return found


def _first_marked(marked: NDArray[np.bool_], first: NDArray[np.intp], last: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first marked row in each [first, last); `last` if there is none."""
    places = np.append(np.flatnonzero(marked), len(marked))
    found: NDArray[np.intp] = np.minimum(places[np.searchsorted(places, first)], last)
    return found
