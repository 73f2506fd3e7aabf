"""Groups of instructions and their tasks -> the code of trampolines, and the jumps to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.standalone.code.groups import Groups
from kinst.rewriter.standalone.code.laying import Laid, Pieces, lay
from kinst.rewriter.standalone.code.material import Material
from kinst.rewriter.standalone.code.parts import Addresses, Mask, Numbers
from kinst.rewriter.standalone.code.pieces import pieces
from kinst.rewriter.standalone.code.templates import Templates
from kinst.rewriter.standalone.code.trampoline import Masks, Tasks
from kinst.rewriter.standalone.filling import Filling
from kinst.rewriter.standalone.jumping import Jumps, filled_up, joined_jumps, lay_jumps
from kinst.rewriter.standalone.places.spare import Gap

NO_SPACE: Final = "no room is left for its trampoline, inside the image or where --trampoline-base says"
_BATCH: Final = 1 << 14  # groups at a time: their arrays stay in the cache
_SAMPLED: Final = 16  # one of so many tells how long they are


@dataclass(slots=True)
class Built:
    """The trampolines of each room, one behind the other; the trampoline of each site, by number; the jumps; why some
    sites have none; and about how many bytes the last room would have to have."""

    code: list[tuple[int, bytearray]]
    trampolines: NDArray[np.uint64]
    jumps: Jumps = field(default_factory=lambda: joined_jumps(()))
    refused: dict[int, str] = field(default_factory=dict)
    needed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Which of a program's instructions are sites, ascending; their tasks; and why some of them, by number, have no
    trampoline in any case."""

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
    """Trampolines in some gaps. If sites are refused, there are none: others will have other numbers and places.

    Args:
        templates: the machine's.
        material: the program.
        wanted: what jumps shall cover.
        work: what shall be done.
        gaps: where trampolines may be, ascending.
        progress: told of groups.
        is_near: jumps reach all of it. Where some site is refused, places are not looked at any more.
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
    """Groups and their pieces; the address of each, and what is dead there; and sites, by number, with their groups."""

    groups: Groups
    pieces: Pieces
    start: Addresses
    dead: Masks
    sites: Numbers
    owner: Numbers

    def without(self, gone: Mask) -> "_Batch":
        """The rest of the groups."""
        number, sites = np.cumsum(~gone) - 1, ~gone[self.owner]
        rest = (self.groups.take(~gone), self.pieces.without(gone), self.start[~gone], self.dead[~gone])
        return _Batch(*rest, self.sites[sites], number[self.owner[sites]])


class _Builder:
    def __init__(
        self, templates: Templates, material: Material, work: Work, gaps: Sequence[Gap], *, is_near: bool
    ) -> None:
        self._built = Built([(start, bytearray()) for start, _ in gaps], np.zeros(len(work.sites), np.uint64))
        self._built.refused |= work.refused
        self._templates, self._material, self._sites, self._tasks = templates, material, work.sites, work.tasks
        self._is_near = is_near
        self._filling, self._jumps, self._without_space = Filling(gaps), list[Jumps](), list[int]()

    def add(self, some: Groups) -> None:
        """The trampolines of some groups, and the jumps to them."""
        while len(some):
            batch, why = self._batch(some)
            while not why.any():
                if self._is_near and self._built.refused:
                    self._measure(batch)
                    return
                why = self._added(batch)
                if not why.any():
                    return
                if (batch.groups.count > batch.groups.least)[why != 0].any():
                    break
                self._refuse(batch.groups.take(why != 0), why[why != 0])
                batch, why = batch.without(why != 0), np.zeros(1, np.int64)
            some = self._shortened(batch.groups, why)

    def _shortened(self, some: Groups, why: Numbers) -> Groups:
        """What may be there instead of groups with a reason: they without what is not covered, which may be what cannot
        be moved."""
        is_long = (why != 0) & (some.count > some.least)
        self._refuse(some.take(why != 0), why[why != 0])
        return some.shortened(is_long).take((why == 0) | is_long)

    def done(self) -> Built:
        """What has come of it: jumps only if nothing is refused."""
        if not self._is_near or not self._built.refused:
            self._built.refused |= dict.fromkeys(self._without_space, NO_SPACE)
        if not self._built.refused:
            self._built.jumps = joined_jumps(self._jumps)
        self._built.needed = self._filling.needed
        return self._built

    def _refuse(self, some: Groups, why: Numbers) -> None:
        """The sites of some groups; if they are long, only those that are not covered."""
        first = np.where(some.count > some.least, some.first + some.least, some.first)
        texts = [*self._templates.reasons]
        within = zip(
            *(np.searchsorted(self._sites, rows).tolist() for rows in (first, some.first + some.count)), strict=True
        )
        for (begin, end), reason in zip(within, why.tolist(), strict=True):
            self._built.refused |= dict.fromkeys(range(begin, end), texts[reason])

    def _batch(self, some: Groups) -> tuple[_Batch, Numbers]:
        """Groups, and reasons of those that cannot be, wherever they are."""
        numbers, rows = self._material.rows(some)
        place = np.minimum(np.searchsorted(self._sites, numbers), len(self._sites) - 1)
        is_site = self._sites[place] == numbers
        found, why = pieces(self._templates, rows, self._tasks, np.where(is_site, place, -1))
        head = np.searchsorted(rows.group, np.arange(len(some)))
        return _Batch(some, found, rows.address[head], rows.dead[head], place[is_site], rows.group[is_site]), why

    def _added(self, batch: _Batch) -> Numbers:
        """Reasons of groups that cannot be there, 0 elsewhere; if there are none, they are."""
        laid = lay(self._templates, batch.pieces, len(batch.groups), self._filling.addresses)
        why = laid.refused if laid.refused.any() else self._jump(batch, laid.address)
        if why.any():
            return self._too_far(why, batch.start, laid)
        self._fill(batch, laid)
        self._built.trampolines[batch.sites] = laid.address[batch.owner]
        return why

    def _measure(self, batch: _Batch) -> None:
        """Take about the room that some groups will take: some of them tell."""
        few = batch.without(np.arange(len(batch.groups)) % _SAMPLED != 0)
        if len(few.groups):
            laid = lay(self._templates, few.pieces, len(few.groups), self._filling.addresses)
            self._filling.put(laid.start[-1:] * -(-len(batch.groups) // len(few.groups)))

    def _too_far(self, why: Numbers, start: Addresses, laid: Laid) -> Numbers:
        """The reasons of those groups that would be too far from their trampolines even if others of them went, which
        take room before them. Of all, if there are no such."""
        sizes, reach, gone = np.diff(laid.start).tolist(), self._material.program.image.facts.jump.reach, 0
        away, kept = (laid.address - start).view(np.int64).tolist(), why.copy()
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
        """Put the jumps of groups there. Returns the reasons of those that cannot be, and if there are any, none is
        there."""
        some, image = batch.groups, self._material.program.image
        relayed = np.flatnonzero(some.relay)
        at = np.concatenate([batch.start, some.relay[relayed]])
        goal = np.concatenate([np.where(some.relay, some.relay, trampolines), trampolines[relayed]])
        size = np.concatenate([some.size, np.full(len(relayed), image.facts.jump.size)])
        owner = np.concatenate([np.arange(len(some)), relayed])
        laid = lay_jumps(self._templates, at, size, goal, batch.dead[owner])
        why = np.zeros(len(some), np.int64)
        np.maximum.at(why, owner, laid.refused)
        if not why.any():
            self._jumps.append(Jumps(at, size, filled_up(laid, size, self._templates.generator.filler)))
        return why
