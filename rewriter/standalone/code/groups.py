"""Sites that can be jumps, and how -> what each jump covers, and what goes into its trampoline with it."""

from dataclasses import dataclass, fields

import numpy as np

from kinst.rewriter.jumps.methods import Decisions, JumpMethod
from kinst.rewriter.standalone.code.parts import Addresses, Mask, Numbers
from kinst.targets.arch.facts import JumpFacts
from kinst.targets.instruction import Instructions


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows of instructions, one behind the other: columns, in address order. `size` bytes of a jump begin at the
    `first` row.

    `least` of the `count` rows are covered by it; the rest only follows in the trampoline. `relay` is where the long
    jump is to which a short one goes, else 0.
    """

    first: Numbers
    least: Numbers
    count: Numbers
    size: Numbers
    relay: Addresses

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: Numbers | Mask | slice) -> "Groups":
        """The groups chosen by an index array, a mask or a slice."""
        return Groups(*(getattr(self, field.name)[rows] for field in fields(self)))

    def shortened(self, rows: Mask) -> "Groups":
        """Some without what is not covered."""
        return Groups(self.first, self.least, np.where(rows, self.least, self.count), self.size, self.relay)


def groups(found: Instructions, sites: Numbers, decisions: Decisions, facts: JumpFacts) -> Groups:
    """The groups of some sites.

    Args:
        found: all instructions of the program.
        sites: rows of `found`, ascending.
        decisions: how each of them becomes a jump.
        facts: of the jumps.
    """
    method, last, places = decisions.method, decisions.last, np.arange(len(sites))
    is_head = method != JumpMethod.INSIDE
    head = np.maximum.accumulate(np.where(is_head, places, -1))
    before = np.concatenate([np.full(1, -1), sites[:-1]])[: len(sites)]
    breaks = ~is_head & (sites > last[head]) & (sites != before + 1)
    broken = np.cumsum(breaks)
    follows = ~is_head & (head >= 0) & (broken == broken[head])
    heads = np.flatnonzero(is_head & (method != JumpMethod.TRAP))
    behind = heads + np.bincount(head[follows], minlength=len(sites))[heads]
    first, last, relay = sites[heads], last[heads], decisions.relay[heads]
    size = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.size, dtype=np.int64)])
    covered = size[last + 1] - size[first]
    count = np.maximum(last, sites[behind]) - first + 1
    return Groups(first, last - first + 1, count, np.where(relay, covered, np.maximum(covered, facts.size)), relay)
