"""Groups of instructions and their tasks -> the code of trampolines, and the jumps to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.progress import Progress
from kinst.rewriter.standalone.filling import Filling
from kinst.rewriter.standalone.groups import Groups
from kinst.rewriter.standalone.jumping import Jumps, filled_up, lay_jumps, patches
from kinst.rewriter.standalone.laying import Laid, lay
from kinst.rewriter.standalone.material import Material
from kinst.rewriter.standalone.parts import Addresses, Numbers
from kinst.rewriter.standalone.pieces import pieces
from kinst.rewriter.standalone.rooms import Room
from kinst.rewriter.standalone.templates import Templates
from kinst.rewriter.standalone.trampoline import Masks, Tasks
from kinst.targets.patch import Patch

NO_ROOM: Final = "no room is left for its trampoline"
_BATCH: Final = 1 << 14  # groups at a time: their arrays stay in the cache


@dataclass(slots=True)
class Built:
    """The trampolines of each room, one behind the other; the jumps, which are one patch where they are one behind the
    other; the trampoline of each site, by number; why some sites have none; and how many bytes the last room would have
    to have."""

    code: list[tuple[int, bytearray]]
    trampolines: NDArray[np.uint64]
    jumps: list[Patch] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    needed: int = 0


def build(
    templates: Templates,
    material: Material,
    wanted: Groups,
    sites: Numbers,
    tasks: Tasks,
    rooms: Sequence[Room],
    progress: Progress,
) -> Built:
    """Trampolines in some rooms.

    Args:
        templates: the machine's.
        material: the program.
        wanted: what jumps shall cover.
        sites: which of the program's instructions, ascending.
        tasks: theirs.
        rooms: where trampolines may be, ascending.
        progress: told of groups.
    """
    builder = _Builder(templates, material, sites, tasks, rooms)
    with progress("trampolines", len(wanted)) as done:
        for start in range(0, len(wanted), _BATCH):
            some = wanted.take(slice(start, start + _BATCH))
            builder.add(some)
            done(len(some))
    return builder.done()


class _Builder:
    def __init__(
        self, templates: Templates, material: Material, sites: Numbers, tasks: Tasks, rooms: Sequence[Room]
    ) -> None:
        self._built = Built([(start, bytearray()) for start, _ in rooms], np.zeros(len(sites), np.uint64))
        self._templates, self._material, self._sites, self._tasks = templates, material, sites, tasks
        self._filling, self._jumps = Filling(rooms), list[Jumps]()

    def add(self, some: Groups) -> None:
        """The trampolines of some groups, and the jumps to them."""
        while len(some):
            why = self._added(some)
            if not why.any():
                return
            is_long = (why != 0) & (some.count > some.least)  # the rest may be what cannot be moved
            texts = [*self._templates.reasons]
            for group in np.flatnonzero(why).tolist():
                self._refuse(some, group, int(some.least[group]) if is_long[group] else 0, texts[why[group]])
            some = some.shortened(is_long).take((why == 0) | is_long)

    def done(self) -> Built:
        """What has come of it."""
        self._built.jumps = patches(self._material.program.image, self._jumps)
        self._built.needed = self._filling.needed
        return self._built

    def _refuse(self, some: Groups, group: int, kept: int, why: str) -> None:
        """All instructions of a group but the first few."""
        first = int(some.first[group])
        within = np.searchsorted(self._sites, (first + kept, first + int(some.count[group])))
        self._built.refused |= dict.fromkeys(range(*within.tolist()), why)

    def _added(self, some: Groups) -> Numbers:
        """Reasons of groups that cannot be, 0 elsewhere; if there are none, the others are there."""
        numbers, rows = self._material.rows(some)
        place = np.minimum(np.searchsorted(self._sites, numbers), len(self._sites) - 1)
        sites = np.where(self._sites[place] == numbers, place, -1)
        found, why = pieces(self._templates, rows, self._tasks, sites)
        if why.any():
            return why
        laid = lay(self._templates, found, len(some), self._filling.addresses)
        head = np.searchsorted(rows.group, np.arange(len(some)))
        start = rows.address[head]
        why = laid.refused if laid.refused.any() else self._jump(some, start, rows.dead[head], laid.address)
        if why.any():
            return self._too_far(why, start, laid)
        self._fill(some, laid)
        is_site = sites >= 0
        self._built.trampolines[sites[is_site]] = laid.address[rows.group[is_site]]
        return why

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

    def _fill(self, some: Groups, laid: Laid) -> None:
        rooms = self._filling.put(np.diff(laid.start))
        for room in np.unique(rooms[rooms >= 0]).tolist():
            own = np.flatnonzero(rooms == room)
            self._built.code[room][1].extend(laid.code[laid.start[own[0]] : laid.start[own[-1] + 1]].data)
        for group in np.flatnonzero(rooms < 0).tolist():
            self._refuse(some, group, 0, NO_ROOM)

    def _jump(self, some: Groups, start: Addresses, dead: Masks, trampolines: Addresses) -> Numbers:
        """Put the jumps of groups there. Returns the reasons of those that cannot be, and if there are any, none is
        there."""
        image, relayed = self._material.program.image, np.flatnonzero(some.relay)
        at = np.concatenate([start, some.relay[relayed]])
        goal = np.concatenate([np.where(some.relay, some.relay, trampolines), trampolines[relayed]])
        size = np.concatenate([some.size, np.full(len(relayed), image.facts.jump.size)])
        owner = np.concatenate([np.arange(len(some)), relayed])
        laid = lay_jumps(self._templates, at, size, goal, dead[owner])
        why = np.zeros(len(some), np.int64)
        np.maximum.at(why, owner, laid.refused)
        if not why.any():
            self._jumps.append(Jumps(at, size, filled_up(laid, size, self._templates.maker.filler)))
        return why
