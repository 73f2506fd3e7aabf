"""How the hits of a site are delivered to the clauses of its probes, and the reason why no cheaper way will do.

`kinst.runtime.hits` decides it, and has the rule by which hits of different deliveries become visible.
"""

from enum import IntEnum

from kinst.targets.values import dataclass


class Way(IntEnum):
    """From the cheapest to the dearest. The first two are what documents call counted, the next two batched."""

    BLOCK = 0  # the emulator counts where a block of code begins, without a breakpoint
    COUNT = 1  # at the breakpoint a cell of the CPU is added to
    RECORD = 2  # registers are recorded, and clauses run once for all hits that are alike
    REPLAY = 3  # the time and the thread are recorded as well, and clauses run for each hit, later and in order
    DISPATCH = 4  # Python runs the clauses at the hit


@dataclass(frozen=True, slots=True)
class Delivery:
    """A way, and why no cheaper one will do; empty if it is the cheapest."""

    way: Way
    why: str = ""

    @property
    def is_batched(self) -> bool:
        """Whether clauses may run after the hit."""
        return self.way is not Way.DISPATCH


DISPATCHED = Delivery(Way.DISPATCH)
