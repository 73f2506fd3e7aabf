"""Groups of instructions and their tasks -> the code of trampolines, and the jumps to them.

A pass either places everything or refuses some sites; then its code is discarded, since `plan` leaves those sites out
and starts again: the numbers of the other sites, and with them the addresses of their counters, change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.frames.spans import ONE, Spans, joined_spans
from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.standalone.code.groups import Groups
from kinst.rewriter.standalone.code.laying import Laid, Pieces, lay
from kinst.rewriter.standalone.code.material import Material
from kinst.rewriter.standalone.code.parts import HERE, NEXT, Addresses, Mask, Numbers
from kinst.rewriter.standalone.code.pieces import pieces
from kinst.rewriter.standalone.code.templates import OWN, Templates
from kinst.rewriter.standalone.code.trampoline import Masks, Tasks
from kinst.rewriter.standalone.filling import Filling
from kinst.rewriter.standalone.jumping import Jumps, filled_up, joined_jumps, lay_jumps, led_to
from kinst.rewriter.standalone.places.spare import Gap
from kinst.targets.values import dataclass

NO_SPACE: Final = "no room is left for its trampoline, inside the image or where --trampoline-base says"
_BATCH: Final = 1 << 14  # groups at a time: their arrays stay in the cache
_SAMPLED: Final = 16  # every 16th group is laid out where only the size of all is needed


@dataclass(slots=True)
class Built:
    """The trampolines of each gap, back to back; the trampoline of each site, by number; the jumps; where the parts of
    trampolines are; the sites without one, by number, with the reason; and about how many bytes the last gap would
    need to hold what did not fit."""

    code: list[tuple[int, bytearray]]
    trampolines: NDArray[np.uint64]
    jumps: Jumps = field(default_factory=lambda: joined_jumps(()))
    spans: Spans = field(default_factory=lambda: joined_spans(()))
    refused: dict[int, str] = field(default_factory=dict)
    needed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Which instructions of a program are sites, ascending; their tasks; and the sites, by number, that are known to
    have no trampoline, with the reason."""

    sites: Numbers
    tasks: Tasks
    refused: Mapping[int, str]


def build(
    templates: Templates,
    material: Material,
    wanted: Groups,
    work: Work,
    gaps: Sequence[Gap],
    progress: Progress,
    *,
    is_near: bool,
) -> Built:
    """Place trampolines in gaps, and make the jumps to them. There are no jumps if a site is refused: see the module.

    Args:
        templates: of the machine.
        material: the program.
        wanted: what jumps shall cover.
        work: the sites and their tasks.
        gaps: where trampolines may be, ascending.
        progress: notified of finished groups.
        is_near: a jump reaches all gaps from every site. Then places do not matter once a site is refused, and only the
            size of the rest is estimated.
    """
    builder = _Builder(templates, material, work, gaps, is_near=is_near)
    with progress("trampolines", len(wanted)) as done:
        for start in range(0, len(wanted), _BATCH):
            some = wanted.take(slice(start, start + _BATCH))
            builder.add(some)
            done(len(some))
    return builder.done()


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Groups and their pieces; the address of each group, and what is dead there; the sites in them, by number, and the
    group of each site; and the rows that the kernel rewrites, with the fields of its records, and their groups."""

    groups: Groups
    pieces: Pieces
    start: Addresses
    dead: Masks
    sites: Numbers
    owner: Numbers
    led: Numbers
    field: Addresses
    led_owner: Numbers

    def without(self, gone: Mask) -> "_Batch":
        """The batch less some groups; the others are renumbered."""
        number, sites, led = np.cumsum(~gone) - 1, ~gone[self.owner], ~gone[self.led_owner]
        rest = (self.groups.take(~gone), self.pieces.without(gone), self.start[~gone], self.dead[~gone])
        rows = (self.led[led], self.field[led], number[self.led_owner[led]])
        return _Batch(*rest, self.sites[sites], number[self.owner[sites]], *rows)


class _Builder:
    def __init__(
        self, templates: Templates, material: Material, work: Work, gaps: Sequence[Gap], *, is_near: bool
    ) -> None:
        self._built = Built([(start, bytearray()) for start, _ in gaps], np.zeros(len(work.sites), np.uint64))
        self._built.refused |= work.refused
        self._templates, self._material, self._sites, self._tasks = templates, material, work.sites, work.tasks
        self._is_near = is_near
        self._filling, self._jumps, self._without_space = Filling(gaps), list[Jumps](), list[int]()
        self._spans = list[Spans]()

    def add(self, some: Groups) -> None:
        """Place the trampolines of some groups, and the jumps to them."""
        while len(some):
            # Reasons that hold at any place: an instruction that cannot be displaced, a branch into the middle of the
            # group.
            batch, why = self._batch(some)
            while not why.any():
                if self._is_near and self._built.refused:
                    # The code is discarded anyway; only `needed` is still of use.
                    self._measure(batch)
                    return
                why = self._added(batch)
                if not why.any():
                    return
                if (batch.groups.count > batch.groups.least)[why != 0].any():
                    # Without the sites after the jump the trampoline is shorter, or what cannot be displaced is not in
                    # it: its pieces are made anew.
                    break
                self._refuse(batch.groups.take(why != 0), why[why != 0])
                # These groups have nothing to give up. Trampolines after theirs move closer, so the others are tried
                # again as they are.
                batch, why = batch.without(why != 0), np.zeros(1, np.int64)
            some = self._shortened(batch.groups, why)

    def _shortened(self, some: Groups, why: Numbers) -> Groups:
        """The groups for another attempt: of those with a reason, long ones lose the instructions that their jump does
        not cover, which may be what cannot be displaced; the others are refused."""
        is_long = (why != 0) & (some.count > some.least)
        self._refuse(some.take(why != 0), why[why != 0])
        return some.shortened(is_long).take((why == 0) | is_long)

    def done(self) -> Built:
        """What was built. Jumps are kept only if no site is refused."""
        # If jumps reach everything, a site without space is reported only when nothing else is wrong: `plan` drops the
        # sites that are refused for good, and the rest may fit.
        if not self._is_near or not self._built.refused:
            self._built.refused |= dict.fromkeys(self._without_space, NO_SPACE)
        if not self._built.refused:
            self._built.jumps = joined_jumps(self._jumps)
            self._built.spans = joined_spans(self._spans)
        self._built.needed = self._filling.needed
        return self._built

    def _refuse(self, some: Groups, why: Numbers) -> None:
        """Refuse the sites of some groups; of long groups only those that the jump does not cover: the shortened group
        is tried again."""
        first = np.where(some.count > some.least, some.first + some.least, some.first)
        texts = [*self._templates.reasons]
        within = zip(
            *(np.searchsorted(self._sites, rows).tolist() for rows in (first, some.first + some.count)), strict=True
        )
        for (begin, end), reason in zip(within, why.tolist(), strict=True):
            self._built.refused |= dict.fromkeys(range(begin, end), texts[reason])

    def _batch(self, some: Groups) -> tuple[_Batch, Numbers]:
        """The groups with their pieces, and for each the reason why it cannot be displaced at all, or 0."""
        numbers, rows = self._material.rows(some)
        place = np.minimum(np.searchsorted(self._sites, numbers), len(self._sites) - 1)
        is_site = self._sites[place] == numbers
        found, why = pieces(self._templates, rows, self._tasks, np.where(is_site, place, -1))
        head = np.searchsorted(rows.group, np.arange(len(some)))
        field = self._material.led.fields_of(rows.address)
        led = np.flatnonzero(field)
        parts = (place[is_site], rows.group[is_site], led, field[led], rows.group[led])
        return _Batch(some, found, rows.address[head], rows.dead[head], *parts), why

    def _added(self, batch: _Batch) -> Numbers:
        """Place a whole batch, or nothing of it: then the reasons of the groups that do not fit, 0 for the others."""
        laid = lay(self._templates, batch.pieces, len(batch.groups), self._filling.addresses)
        why = laid.refused if laid.refused.any() else self._jump(batch, laid.address)
        if why.any():
            return self._too_far(why, batch.start, laid)
        self._fill(batch, laid)
        # The copy is the last of its row, and as long as the instruction: nothing falls through it.
        copies = laid.ends[batch.led] - batch.pieces.own_size[batch.led].view(np.uint64)
        self._jumps.append(led_to(batch.field, copies))
        self._built.trampolines[batch.sites] = laid.address[batch.owner]
        self._spans.append(_spans(batch, laid))
        return why

    def _measure(self, batch: _Batch) -> None:
        """Reserve about as much space as the batch will take, extrapolated from a few groups."""
        few = batch.without(np.arange(len(batch.groups)) % _SAMPLED != 0)
        if len(few.groups):
            laid = lay(self._templates, few.pieces, len(few.groups), self._filling.addresses)
            self._filling.put(laid.start[-1:] * -(-len(batch.groups) // len(few.groups)))

    def _too_far(self, why: Numbers, start: Addresses, laid: Laid) -> Numbers:
        """Of the groups that are out of reach, those that stay so when the trampolines of the others, which are in
        front of them, are gone: dropping all would refuse sites without need. All of them if there are none."""
        sizes, reach, gone = np.diff(laid.start).tolist(), self._material.program.image.facts.jump.reach, 0
        away, kept = (laid.address - start).view(np.int64).tolist(), why.copy()
        # Ascending: each trampoline that goes brings those after it closer by its size.
        for group in np.flatnonzero(why).tolist():
            if away[group] - gone + sizes[group] > reach:
                gone += sizes[group]
            else:
                kept[group] = 0
        return kept if kept.any() else why

    def _fill(self, batch: _Batch, laid: Laid) -> None:
        gaps = self._filling.put(np.diff(laid.start))
        for gap in np.unique(gaps[gaps >= 0]).tolist():
            own = np.flatnonzero(gaps == gap)
            self._built.code[gap][1].extend(laid.code[laid.start[own[0]] : laid.start[own[-1] + 1]].data)
        self._without_space += batch.sites[gaps[batch.owner] < 0].tolist()

    def _jump(self, batch: _Batch, trampolines: Addresses) -> Numbers:
        """Make the jumps of some groups, and the reasons of those that do not reach their trampoline, 0 for the others.
        If there are reasons, no jump is kept."""
        some, image = batch.groups, self._material.program.image
        relayed = np.flatnonzero(some.relay)
        # A relayed site has two jumps: a short one to padding within its reach, and there a long one to the trampoline.
        at = np.concatenate([batch.start, some.relay[relayed]])
        goal = np.concatenate([np.where(some.relay, some.relay, trampolines), trampolines[relayed]])
        size = np.concatenate([some.size, np.full(len(relayed), image.facts.jump.size)])
        owner = np.concatenate([np.arange(len(some)), relayed])
        laid = lay_jumps(self._templates, at, size, goal, batch.dead[owner])
        why = np.zeros(len(some), np.int64)
        np.maximum.at(why, owner, laid.refused)
        if not why.any():
            self._jumps.append(Jumps(at, size, filled_up(laid, size, self._templates.generator.filler)))
            code = some.relay[relayed], some.relay[relayed] + size[len(some) :].view(np.uint64), batch.start[relayed]
            self._spans.append(Spans(*code, np.full(len(relayed), ONE)))
        return why


def _spans(batch: _Batch, laid: Laid) -> Spans:
    """The code of tasks, of displaced instructions, and of the jumps back: the first two are entered as the instruction
    is, the last as the next one."""
    pieces, (start, end) = batch.pieces, laid.places
    which = np.arange(len(pieces.template)) % 3
    origin = np.where(which == 2, pieces.values[NEXT][pieces.row], pieces.values[HERE][pieces.row])
    template = np.where((which == 1) & (pieces.template == OWN), ONE, pieces.template)
    some = start < end
    return Spans(start[some], end[some], origin[some], template[some])
