"""Clauses and the probes that they match -> one action for each probe, and DTrace's enabling ids (epids).

Each (clause, probe) is one enabling, an ECB in DTrace's kernel. A probe runs its enablings in the order of the program
(DTrace Guide, "Program Structure"), so probes with the same clauses share one action. Probes are arrays, not objects:
`fbt:::` and `kinst:::` describe millions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.hits.combining import ClauseAction, Combining
from kinst.runtime.providers.provider import Action, Probe, Providers
from kinst.targets.columns import unique
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Enabled:
    """A compiled clause and its probes, ascending. `pattern` is compared with probes that are created later."""

    clause: ClauseAction
    probes: NDArray[np.intp]
    pattern: ProbeName | None


class Enablings:
    """All enablings of a session."""

    def __init__(self, clauses: Sequence[Enabled], combining: Combining) -> None:
        """Nothing is enabled yet. `clauses` are in the order of the program."""
        self._combining = combining
        self._clauses = list(clauses)
        # epids are consecutive and begin at 1, as in DTrace, where 0 is DTRACE_EPIDNONE. The clause that matches all
        # functions takes a range of them, so that its first one is all that is stored.
        counts = [len(clause.probes) for clause in self._clauses]
        self._first = np.concatenate([[1], 1 + np.cumsum(counts, dtype=np.int64)])
        self._late: dict[tuple[int, int], int] = {}  # (clause, probe) of probes that were created later -> epid

    @property
    def count(self) -> int:
        """The number of enablings."""
        return int(self._first[-1]) - 1 + len(self._late)

    @property
    def identifiers(self) -> list[int]:
        """The probes that are enabled, ascending."""
        late = np.array([probe for _, probe in self._late], np.intp)
        found: list[int] = unique(np.concatenate([late, *(clause.probes for clause in self._clauses)])).tolist()
        return found

    def epid(self, clause: int, probe: int) -> int:
        """The id of one enabling, from 1; 0 if there is none."""
        late = self._late.get((clause, probe))
        if late is not None:
            return late
        probes = self._clauses[clause].probes
        row = int(np.searchsorted(probes, probe))
        return int(self._first[clause]) + row if row < len(probes) and probes[row] == probe else 0

    def enable(self, providers: Providers) -> None:
        """Give every probe its action."""
        # Number each distinct sequence of clauses, without a Python object per probe: one pass per clause refines the
        # partition of the probes. A combination is a link to the one without its last clause, like a node of a trie.
        probes = unique(np.concatenate([np.zeros(0, np.intp), *(clause.probes for clause in self._clauses)]))
        combination = np.zeros(len(probes), np.int64)  # the clauses of a probe, as an index in `combinations`
        combinations = [(0, -1)]  # the combination without its last clause, and that clause
        for number, clause in enumerate(self._clauses):
            rows = np.searchsorted(probes, clause.probes)
            before = combination[rows]
            for old in unique(before).tolist():
                combination[rows[before == old]] = len(combinations)
                combinations.append((old, number))
        for index in unique(combination).tolist():
            action = self._action(_numbers(combinations, index))
            providers.enable(probes[combination == index].astype(np.intp), action)

    def enable_new(self, probe: Probe, providers: Providers) -> bool:
        """Enable a probe that a provider created while the guest runs, for the clauses whose descriptions it
        matches."""
        numbers = tuple(
            number
            for number, clause in enumerate(self._clauses)
            if clause.pattern is not None
            and clause.pattern.matches(probe.provider, probe.module, probe.function, probe.name)
        )
        if not numbers:
            return False
        for number in numbers:
            self._late[number, probe.identifier] = self.count + 1
        providers.enable(np.array([probe.identifier], np.intp), self._action(numbers))
        return True

    def _action(self, numbers: Sequence[int]) -> Action:
        return self._combining.action([self._clauses[number].clause for number in numbers])


def _numbers(combinations: Sequence[tuple[int, int]], index: int) -> tuple[int, ...]:
    """The clauses of a combination. It stores only its last one: with thousands of clauses on one probe, a list in each
    combination would take gigabytes."""
    numbers = []
    while index:
        index, number = combinations[index]
        numbers.append(number)
    return tuple(reversed(numbers))
