"""Sites that can be jumps, and how -> what each jump covers, and what goes into its trampoline with it."""

from dataclasses import fields

import numpy as np

from kinst.rewriter.jumps.methods import Decisions, JumpMethod
from kinst.rewriter.standalone.code.parts import Addresses, Mask, Numbers
from kinst.targets.arch.facts import JumpFacts
from kinst.targets.instruction import Instructions
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Runs of consecutive instructions, by their rows: columns, in address order. The jump of a group begins at its
    `first` row and has `size` bytes.

    The jump covers `least` of the `count` rows; the rest only goes into the same trampoline. `relay` is the address of
    the long jump that a short one leads to, else 0.
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
        """The groups, some of them cut down to what their jumps cover."""
        return Groups(self.first, self.least, np.where(rows, self.least, self.count), self.size, self.relay)


def groups(found: Instructions, sites: Numbers, decisions: Decisions, facts: JumpFacts) -> Groups:
    """The groups of some sites.

    Args:
        found: all instructions of the program.
        sites: rows of `found`, ascending.
        decisions: how each of them becomes a jump.
        facts: how long jumps are.
    """
    method, last, places = decisions.method, decisions.last, np.arange(len(sites))
    # A group begins at each site with a way of its own and takes the INSIDE sites after it, as long as each is covered
    # by the jump, or the instructions up to it follow the site before it.
    is_head = method != JumpMethod.INSIDE
    head = np.maximum.accumulate(np.where(is_head, places, -1))
    before = np.concatenate([np.full(1, -1), sites[:-1]])[: len(sites)]
    breaks = ~is_head & (decisions.first > np.maximum(last[head], before) + 1)
    broken = np.cumsum(breaks)
    follows = ~is_head & (head >= 0) & (broken == broken[head])
    heads = np.flatnonzero(is_head & (method != JumpMethod.TRAP))
    after = heads + np.bincount(head[follows], minlength=len(sites))[heads]
    first, last, relay = decisions.first[heads], last[heads], decisions.relay[heads]
    size = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.size, dtype=np.int64)])
    covered = size[last + 1] - size[first]
    count = np.maximum(last, sites[after]) - first + 1
    return Groups(first, last - first + 1, count, np.where(relay, covered, np.maximum(covered, facts.size)), relay)
