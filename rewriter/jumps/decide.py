"""A program and its instructions -> how each can become a jump to its trampoline.

The usual ways, the best first: in the instruction's own bytes; over the next instructions, which then run in the
trampoline as well; over padding after it; by a short jump to padding within reach; over the instructions before it, or
in the trampoline of the site before it, if it is reached only from there. A jump over several instructions must be
written before the code runs: a CPU that was interrupted between two of them would return into the middle of the jump.

Jumps whose upper bytes double as the next instruction (e9patch's "punned" ones) are left out: their trampolines would
lie anywhere within 2 GB, where the guest has memory of its own.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.before import Chosen, Wanted, Way, cover_before
from kinst.rewriter.jumps.landings import Landings, landings
from kinst.rewriter.jumps.led import led
from kinst.rewriter.jumps.methods import Decisions, Hindrance, JumpMethod
from kinst.rewriter.jumps.padding import Padding, padding, swept_between
from kinst.rewriter.jumps.relays import relays
from kinst.rewriter.program import Program
from kinst.targets.arch.facts import JumpFacts
from kinst.targets.columns import holds, is_in, is_one_of
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict
from kinst.targets.kernels.exception_table import expected_faults
from kinst.targets.kernels.leading_records import LeadingRecords
from kinst.targets.values import dataclass

Rows = NDArray[np.int64]
Column = NDArray[np.uint8]
Addresses = NDArray[np.uint64]
_FALLS: Final = (Flow.NEXT, Flow.BRANCH)
_NEVER_FALLS: Final = (Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN)
_STAYING: Final = (
    Hindrance.REFUSED,
    Hindrance.DEFERRED,
    Hindrance.EXPECTED_FAULT,
    Hindrance.OUT_OF_REACH,
    Hindrance.CHECKED,
)
_NOWHERE: Final = np.uint64((1 << 64) - 1)
_SCARCE: Final = 50  # compilers write pads into more than every 50th function
_GAP: Final = 1 << 24  # bytes: segments closer than this belong together
_SEVERAL: Final = (JumpMethod.TOGETHER, JumpMethod.PADDING)


def decide(
    program: Program, found: Instructions, sites: Rows, areas: Sequence[tuple[int, int]] | None = None
) -> Decisions:
    """How each of some sites can be a jump.

    Args:
        program: the image.
        found: all instructions of its functions, ascending by address.
        sites: rows of `found`, ascending, without duplicates.
        areas: where the trampolines will be, as half-open ranges; None: after the image.

    Returns:
        One row a site.
    """
    return decide_with(Analysis.of(program, found), sites, areas)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is known of a program before its sites are."""

    program: Program
    found: Instructions
    known: Landings
    padding: Padding
    stays: Column  # a `Hindrance` for instructions that cannot be displaced, else NONE
    led: LeadingRecords  # of instructions that the kernel rewrites where they are displaced to

    @classmethod
    def of(cls, program: Program, found: Instructions, *, in_text: bool = True) -> "Analysis":
        """`found`: all instructions of its functions, ascending by address. `in_text`: whether trampolines will be
        within the text of a Linux kernel, if it is one."""
        between = swept_between(program)
        known = landings(program, found, between)
        free = padding(program, found, between, known.addresses)
        records = led(program, found, in_text=in_text)
        return cls(program, found, known, free, _staying(program, found, records), records)


def decide_with(
    analysis: Analysis,
    sites: Rows,
    areas: Sequence[tuple[int, int]] | None = None,
    leaps: NDArray[np.bool_] | None = None,
) -> Decisions:
    """The same, on an analysis that serves several sets of sites. `leaps`: at which instructions jumps of the longer
    size may begin (a register is dead there); None: at all."""
    program, found, known, free = analysis.program, analysis.found, analysis.known, analysis.padding
    facts, targets = program.image.facts.jump, known.addresses
    # `facts.joins` is unset for arm64, whose jump is as long as any instruction: it never covers a second one.
    is_sure = ~_has_computed_jump(program, found, sites, known) & facts.joins
    need, is_far = _needed(facts, _distance(program, found.address[sites], areas))
    walk = _Walk.over(analysis, sites, is_sure, need, is_far)
    method = np.where(walk.last == sites, JumpMethod.ALONE, JumpMethod.TOGETHER).astype(np.uint8)
    method[walk.has_padding] = JumpMethod.PADDING
    method[walk.hindrance != 0] = JumpMethod.TRAP
    # Before relays: the padding after these jumps is taken.
    _join(sites, walk.last, method)
    last = walk.last[method == JumpMethod.PADDING]
    used = found.address[last] + found.size[last]
    may_relay = _may_relay(found, sites, targets, walk.hindrance, facts) & (need == facts.size)
    short = np.flatnonzero(may_relay & (method == JumpMethod.TRAP))
    relay = np.zeros(len(sites), np.uint64)
    relay[short] = relays(found.address[sites[short]], free, used, facts)
    method[relay != 0] = JumpMethod.RELAY
    last = np.where(relay != 0, sites, walk.last)
    chosen = Chosen(method, sites.copy(), last, walk.hindrance)
    is_long = need != facts.size
    spare = np.where(is_long, 0, _unused(found, sites, free, np.append(used, relay)))
    cover_before(Way(found, analysis.stays, targets, leaps), sites, chosen, Wanted(need, is_long, spare, is_sure))
    # Last: whether the site before is a jump is only known now.
    _append(sites, method, _follows(found, sites, targets) & is_sure & ~is_one_of(walk.hindrance, _STAYING))
    hindrance = np.where(method == JumpMethod.TRAP, walk.hindrance, np.uint8(0))
    return Decisions(method, hindrance, relay, chosen.first, chosen.last)


def _unused(found: Instructions, sites: Rows, free: Padding, used: Addresses) -> Rows:
    """How much padding follows each site in which there is no jump yet, if control does not fall through into it.
    `used`: where jumps in padding begin, and 0."""
    end, taken = found.address[sites] + found.size[sites], np.sort(used)
    size = np.where(is_one_of(found.flow[sites], _NEVER_FALLS), free.sizes_at(end), 0)
    has_jump = np.searchsorted(taken, end + size.view(np.uint64)) > np.searchsorted(taken, end)
    return np.where(has_jump, 0, size)


def _needed(facts: JumpFacts, distance: Addresses) -> tuple[Rows, NDArray[np.bool_]]:
    """The size of the jump to a trampoline so far away, and which trampolines no jump reaches."""
    need, reach = np.full(len(distance), facts.size), facts.reach
    if facts.far is not None:
        need[distance >= np.uint64(reach)], reach = facts.far
    return need, distance >= np.uint64(reach)


def _distance(program: Program, start: Addresses, areas: Sequence[tuple[int, int]] | None) -> Addresses:
    """The distance from each address to the nearest area for trampolines."""
    if areas is None:
        return end_of(program.image, start) - start
    distance = np.full(len(start), _NOWHERE)
    for first, last in areas:
        nearest = np.clip(start, np.uint64(first), np.uint64(last))
        np.minimum(distance, np.maximum(nearest, start) - np.minimum(nearest, start), out=distance)
    return distance


@dataclass(slots=True)
class _Walk:
    """Columns, one row a site: the last instruction that the jump would cover, whether it covers padding after that,
    and a `Hindrance`."""

    last: Rows
    has_padding: NDArray[np.bool_]
    hindrance: Column

    @classmethod
    def over(
        cls,
        analysis: Analysis,
        sites: Rows,
        is_sure: NDArray[np.bool_],
        need: Rows,
        is_far: NDArray[np.bool_],
    ) -> "_Walk":
        """`need`: the size of the jump of each site, in bytes."""
        facts, found, stays = analysis.program.image.facts.jump, analysis.found, analysis.stays
        walk = cls(sites.copy(), np.zeros(len(sites), np.bool_), stays[sites])
        start, size = found.address[sites], found.size[sites].astype(np.int64)
        walk._hinder(is_far, Hindrance.OUT_OF_REACH)
        # A branch into the middle of the jump would run its displacement as code.
        walk._hinder(_is_entered(analysis.known.addresses, start, need), Hindrance.LED_TO)
        # Each round extends all jumps that are still too short by one instruction; none is shorter than a byte.
        for _ in range(int(need.max(initial=0))):
            short = np.flatnonzero((size < need) & (walk.hindrance == 0) & ~walk.has_padding)
            if not short.size:
                break
            at = walk.last[short]
            end = found.address[at] + found.size[at]
            never_falls = is_one_of(found.flow[at], _NEVER_FALLS)
            is_near = need[short] == facts.size  # `relays` reserves jumps of that size
            walk.has_padding[short] = (
                is_near & never_falls & (analysis.padding.sizes_at(end) >= facts.size - size[short])
            )
            following = np.minimum(at + 1, len(found) - 1)
            # Later assignments win: what is most fundamental comes last.
            obstacle = np.where(stays[following] != 0, Hindrance.NOT_MOVABLE, 0)
            obstacle[~is_sure[short]] = Hindrance.COMPUTED_JUMP if facts.joins else Hindrance.TOO_SHORT
            obstacle[(found.address[following] != end) | ~is_one_of(found.flow[at], _FALLS)] = Hindrance.LEAVES
            obstacle[walk.has_padding[short]] = Hindrance.NONE
            walk.hindrance[short] = obstacle
            on = short[(obstacle == 0) & ~walk.has_padding[short]]
            walk.last[on] += 1
            size[on] += found.size[walk.last[on]]
        return walk

    def _hinder(self, rows: NDArray[np.bool_], why: Hindrance) -> None:
        self.hindrance[rows & (self.hindrance == 0)] = why


def end_of(image: Image, address: Addresses) -> Addresses:
    """The end of the image's memory as seen from each address, with gaps up to `_GAP` closed: trampolines may lie
    after it."""
    loaded = sorted((one.address, one.address + one.size) for one in image.segments if one.kind == PT_LOAD)
    found = address.copy()
    for region in image.code_regions:
        end = region.address + region.size
        for start, last in loaded:
            end = max(end, last) if start <= end + _GAP else end
        found[address - np.uint64(region.address) < np.uint64(region.size)] = end
    return found


def _staying(program: Program, found: Instructions, records: LeadingRecords) -> Column:
    """Why instructions cannot be displaced, as a `Hindrance`."""
    why = np.zeros(len(found), np.uint8)
    # Where hardware checks landing pads (FEAT_BTI), a pad must stay in place, and a call that became a jump in its
    # trampoline would not look like one.
    if _lands_on_pads(program, found):
        why[is_one_of(found.kind, list(program.image.facts.jump.checked))] = Hindrance.CHECKED
    # The kernel looks the faulting address up in its exception table, and a trampoline's is not there.
    why[holds(found.address, expected_faults(program.image).instruction)] = Hindrance.EXPECTED_FAULT
    why[(found.verdict == Verdict.DEFER) & ~holds(found.address, records.site)] = Hindrance.DEFERRED
    why[found.verdict == Verdict.REFUSE] = Hindrance.REFUSED
    return why


def _lands_on_pads(program: Program, found: Instructions) -> bool:
    """Whether functions begin with landing pads, as compilers write them for hardware that checks. Assembly has a few
    in any case. paciasp, which signs the return address, is a pad as well, but does not count: it is written for its
    own sake."""
    begins = holds(found.address, program.functions.address)
    pads = int(np.count_nonzero(begins & (found.reason == Reason.LANDING_PAD)))
    return pads * _SCARCE > len(program.functions)


def _is_entered(targets: Addresses, start: Addresses, size: Rows | int) -> NDArray[np.bool_]:
    """Whether anything branches into a range past its first byte."""
    following = np.append(targets, _NOWHERE)[np.searchsorted(targets, start, "right")]
    result: NDArray[np.bool_] = following < start + np.asarray(size, np.uint64)
    return result


def _may_relay(
    found: Instructions, sites: Rows, targets: Addresses, hindrance: Column, facts: JumpFacts
) -> NDArray[np.bool_]:
    """Which sites have enough bytes for a short jump."""
    if facts.short is None:
        return np.zeros(len(sites), np.bool_)
    size = facts.short[0]
    movable = ~is_one_of(hindrance, _STAYING)
    fits: NDArray[np.bool_] = movable & (found.size[sites] >= size) & ~_is_entered(targets, found.address[sites], size)
    return fits


def _has_computed_jump(program: Program, found: Instructions, sites: Rows, known: Landings) -> NDArray[np.bool_]:
    """Whether the function of each site has a computed jump that may lead anywhere in it."""
    has_computed = np.zeros(len(program.functions), np.bool_)
    has_computed[found.function[known.unknown]] = True
    return has_computed[found.function[sites]]


def _follows(found: Instructions, sites: Rows, targets: Addresses) -> NDArray[np.bool_]:
    """Which sites are reached from the instruction before them, and from nowhere else."""
    before = np.maximum(sites - 1, 0)
    falls = is_one_of(found.flow[before], _FALLS) & (found.address[before] + found.size[before] == found.address[sites])
    result: NDArray[np.bool_] = falls & ~is_in(found.address[sites], targets)
    return result


def _append(sites: Rows, method: Column, follows: NDArray[np.bool_]) -> None:
    """Sites that are too short for a jump of their own, but follow one that is a jump, go into its trampoline."""
    is_next = np.append(False, sites[1:] == sites[:-1] + 1)
    may = follows & is_next & (method == JumpMethod.TRAP)
    before = np.maximum.accumulate(np.where(may, 0, np.arange(len(sites))))  # the last one that is decided
    method[may & (method[before] != JumpMethod.TRAP)] = JumpMethod.INSIDE


def _join(sites: Rows, last: Rows, method: Column) -> None:
    """Sites that the jump of an earlier site covers are in its trampoline."""
    several = np.flatnonzero(is_one_of(method, _SEVERAL))
    first_free = np.searchsorted(sites, last[several], "right")  # the first site that each would not cover
    # A jump that is itself covered covers nothing: from each chosen jump on to the next site that it leaves uncovered.
    following, one, chosen = np.searchsorted(several, first_free).tolist(), 0, list[int]()
    while one < len(several):
        chosen.append(one)
        one = following[one]
    # +1 where a covered run begins, -1 where it ends: their sum is positive inside.
    edges = np.zeros(len(sites) + 1, np.int64)
    edges[several[chosen] + 1] += 1
    np.subtract.at(edges, first_free[chosen], 1)
    method[np.cumsum(edges)[:-1] > 0] = JumpMethod.INSIDE
