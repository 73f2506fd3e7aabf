"""Sites that are too short for a jump -> those that one can cover together with the instructions before them.

A return of one byte, before another function: no jump fits from it on. But the instructions before it may be displaced
with it if it is reached from them alone; the site's probe still fires right before its own instruction, which is in the
trampoline as well. If an instruction on that way is in a trampoline already, the rest of the way joins it there.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.methods import Hindrance, JumpMethod
from kinst.targets.columns import is_in, is_one_of
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.values import dataclass

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
Addresses = NDArray[np.uint64]
_FALLS: Final = (Flow.NEXT, Flow.BRANCH)
_MOST: Final = 16  # instructions before one that are displaced with it
_HINDERED: Final = (Hindrance.LED_TO, Hindrance.LEAVES, Hindrance.NOT_MOVABLE)


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """What is known of all instructions: `stays`, a `Hindrance` for those that cannot be displaced; `targets`, where
    control may come to, ascending; `leaps`, at which ones a jump of the longer size may begin, None: at all."""

    found: Instructions
    stays: NDArray[np.uint8]
    targets: Addresses
    leaps: Mask | None

    def begins(self, rows: Rows, is_far: Mask) -> Mask:
        """Whether a jump may begin at each row, of the longer size where `is_far`."""
        return np.ones(len(rows), np.bool_) if self.leaps is None else self.leaps[rows] | ~is_far

    def leads_to(self, rows: Rows) -> Mask:
        """Whether control comes to each row from the row before it alone, and that can be displaced with it."""
        found, before = self.found, np.maximum(rows - 1, 0)
        is_next = (rows > 0) & (found.address[before] + found.size[before] == found.address[rows])
        is_next &= (found.function[before] == found.function[rows]) & (self.stays[before] == 0)
        result: Mask = is_next & is_one_of(found.flow[before], _FALLS) & ~is_in(found.address[rows], self.targets)
        return result

    def is_entered(self, first: Rows, last: Rows, need: Rows) -> Mask:
        """Whether anything leads into a run of rows, past its first byte, or into as many bytes as a jump needs."""
        found = self.found
        start, end = found.address[first], found.address[last] + found.size[last]
        end = np.maximum(end, start + need.astype(np.uint64))
        result: Mask = np.searchsorted(self.targets, end) > np.searchsorted(self.targets, start, "right")
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Columns, one row a site: how it becomes a jump, the rows of the first and of the last instruction that it covers,
    and a `Hindrance`. For INSIDE, `first` is where its way to what is already in the trampoline begins."""

    method: NDArray[np.uint8]
    first: Rows
    last: Rows
    hindrance: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Columns, one row a site: the size of its jump, in bytes; whether that is the longer one; how many bytes of
    padding after the site it may cover as well; and whether no computed jump may lead anywhere in the function."""

    need: Rows
    is_far: Mask
    spare: Rows
    is_sure: Mask

    def take(self, places: Rows) -> "Wanted":
        """Those of some sites."""
        return Wanted(self.need[places], self.is_far[places], self.spare[places], self.is_sure[places])


def cover_before(way: Way, sites: Rows, chosen: Chosen, wanted: Wanted) -> None:
    """Let sites without a jump be covered by one that begins before them, or join a trampoline. Changes `chosen`.

    Args:
        way: what is known of the program.
        sites: rows of its instructions, ascending.
        chosen: what was decided of them.
        wanted: the jumps.
    """
    is_short = (chosen.method == JumpMethod.TRAP) & is_one_of(chosen.hindrance, _HINDERED) & wanted.is_sure
    places = np.flatnonzero(is_short & (way.stays[sites] == 0))
    first, is_joined, is_good = _walk_back(way, sites[places], _Taken.by(sites, chosen), wanted.take(places))
    is_good &= is_joined | ~way.is_entered(first, sites[places], wanted.need[places])
    # From the last one on: what a chosen way contains is in its trampoline, whatever it could be itself.
    lowest = len(way.found)
    for at in np.flatnonzero(is_good)[::-1].tolist():
        if sites[places[at]] < lowest:
            lowest = int(first[at])
            _choose(sites, chosen, int(places[at]), lowest, is_joined=bool(is_joined[at]))


def _choose(sites: Rows, chosen: Chosen, place: int, first: int, *, is_joined: bool) -> None:
    head = int(np.searchsorted(sites, first))
    chosen.method[head : place + 1] = JumpMethod.INSIDE
    chosen.first[head : place + 1] = first
    if not is_joined:
        chosen.method[head], chosen.last[head] = JumpMethod.BEFORE, sites[place]


@dataclass(frozen=True, slots=True, eq=False)
class _Taken:
    """Runs of rows that are in trampolines, ascending: first and last."""

    first: Rows
    last: Rows

    @classmethod
    def by(cls, sites: Rows, chosen: Chosen) -> "_Taken":
        heads = ~is_one_of(chosen.method, (JumpMethod.TRAP, JumpMethod.INSIDE))
        return cls(sites[heads], chosen.last[heads])

    def has(self, rows: Rows) -> Mask:
        """Which rows are in one."""
        if not len(self.first):
            return np.zeros(len(rows), np.bool_)
        run = np.searchsorted(self.first, rows, "right") - 1
        return (run >= 0) & (self.last[np.maximum(run, 0)] >= rows)


def _walk_back(way: Way, rows: Rows, taken: _Taken, wanted: Wanted) -> tuple[Rows, Mask, Mask]:
    """For each row the first one that is displaced with it, whether that follows what is in a trampoline already, and
    whether either is possible."""
    first, size = rows.copy(), way.found.size[rows] + wanted.spare
    is_joined, is_stuck = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    while True:
        is_short = (size < wanted.need) | ~way.begins(first, wanted.is_far)
        short = np.flatnonzero(is_short & ~is_joined & ~is_stuck)
        if not len(short):
            return first, is_joined, ~is_stuck
        is_stuck[short] = rows[short] - first[short] == _MOST
        short = short[~is_stuck[short]]
        leads = way.leads_to(first[short])
        is_taken = leads & taken.has(first[short] - 1)
        is_joined[short], is_stuck[short] = is_taken, ~leads
        on = short[leads & ~is_taken]
        first[on] -= 1
        size[on] += way.found.size[first[on]]
