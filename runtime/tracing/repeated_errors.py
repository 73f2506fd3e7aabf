"""Errors of clauses, as they happen -> one warning for a probe whose clause keeps failing in the same way.

A fault aborts the clause. If its exit() comes after the fault, the run never ends, and the reason is buried in errors
that all look alike.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from kinst.runtime.consumer.messages import fault_text
from kinst.runtime.dlang.program import Clause, Exit
from kinst.runtime.providers.provider import Probe
from kinst.runtime.trap.faults import Fault, FaultKind

MANY: Final = 1000


class RepeatedErrors:
    """The repeated errors of one session."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        """`clauses` is the session's list, which may grow."""
        self._clauses = clauses
        self._counts: Counter[tuple[int, int, int, FaultKind]] = Counter()
        self._reported: set[int] = set()  # probes whose warning was given

    def noted(self, probe: int, clause: int, action: int, fault: Fault) -> bool:
        """Count an error. Returns whether to warn of it: it is the thousandth of its kind, and the probe's first."""
        key = probe, clause, action, fault.kind
        self._counts[key] += 1
        if self._counts[key] != MANY or probe in self._reported:
            return False
        self._reported.add(probe)
        return True

    def line(self, probe: Probe | None, clause: int, action: int, fault: Fault) -> str:
        """The warning, without a newline."""
        where = f"action #{action}" if action else "predicate"
        shown = "" if probe is None else f" of {probe}"
        text = f"clause {self._ordinal(clause)}{shown} has failed {MANY:,} times: {fault_text(fault)} in {where}"
        return text + ("; its exit() was never reached" if self._exits_behind(clause, action) else "")

    def _ordinal(self, number: int) -> int:
        """The place of a clause among those that the user wrote, from 1. `if` and `else` split one into several
        clauses, which share its span (`syntax/sugar`)."""
        spans = [clause.span for clause in self._clauses[: number + 1]]
        return 1 + sum(one != other for one, other in pairwise(spans))

    def _exits_behind(self, number: int, action: int) -> bool:
        """Whether the user's clause would have called exit() after that action: in this clause, or in a later one that
        it was split into."""
        clause = self._clauses[number]
        places = zip(clause.actions, clause.action_numbers, strict=True)
        later = [
            one
            for other in self._clauses[number + 1 :]
            if (other.span, other.description) == (clause.span, clause.description)
            for one in other.actions
        ]
        return any(isinstance(one, Exit) for one in (*(one for one, at in places if at >= action), *later))
