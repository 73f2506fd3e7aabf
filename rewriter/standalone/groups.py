"""Sites that can be jumps, and how -> what each jump covers, and what goes into its trampoline with it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.methods import Decisions, JumpMethod
from kinst.targets.arch.facts import JumpFacts
from kinst.targets.instruction import Instructions


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of instructions, one behind the other. `size` bytes of a jump begin at the first one.

    `least` of the rows are covered by it; the rest only follows in the trampoline. `relay` is where the long jump is to
    which a short one goes, else 0.
    """

    first: int
    least: int
    count: int
    size: int
    relay: int

    def shortened(self) -> "Group":
        """Without what is not covered."""
        return Group(self.first, self.least, self.least, self.size, self.relay)


def groups(found: Instructions, sites: NDArray[np.int64], decisions: Decisions, facts: JumpFacts) -> Iterator[Group]:
    """The groups of some sites, in address order.

    Args:
        found: all instructions of the program.
        sites: rows of `found`, ascending.
        decisions: how each of them becomes a jump.
        facts: of the jumps.
    """
    method, rows, last = decisions.method.tolist(), sites.tolist(), decisions.last.tolist()
    for place, row in enumerate(rows):
        if method[place] in (JumpMethod.TRAP, JumpMethod.INSIDE):
            continue
        relay, end, behind = int(decisions.relay[place]), last[place], place + 1
        covered = int(found.size[row : end + 1].sum())
        size = covered if relay else max(covered, facts.size)
        while (
            behind < len(rows)
            and method[behind] == JumpMethod.INSIDE
            and rows[behind] <= max(end, rows[behind - 1] + 1)
        ):
            end, behind = max(end, rows[behind]), behind + 1
        yield Group(row, last[place] - row + 1, end - row + 1, size, relay)
