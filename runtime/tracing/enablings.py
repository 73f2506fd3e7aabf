"""Clauses and the probes that they match -> one action for each probe, and DTrace's enabling ids (epids).

Each (clause, probe) is one enabling. A probe runs its enablings in the order of the program, so probes with the same
clauses share one action; probes are columns, since there may be millions.
"""

from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.providers.provider import Action, Probe, Providers
from kinst.runtime.trap.recorded import NOTHING, Count, Counting, Reads
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.probe import ProbeName


@dataclass(frozen=True, slots=True)
class Enabled:
    """A compiled clause and its probes, ascending. `pattern` is compared with probes that are created later.
    `is_prompt`: the consumer must act as soon as the clause has run. `count` takes the probe, the CPU and the hits."""

    run: Callable[[Firing], None]
    probes: NDArray[np.intp]
    pattern: ProbeName | None
    is_prompt: bool = False
    count: Count | None = None  # None: hits cannot be told together
    reads: Reads = NOTHING


class Enablings:
    """All enablings of a session."""

    def __init__(
        self,
        clauses: Sequence[Enabled],
        begin: Action | None,
        consume: Callable[[], None] | None = None,
        counted: Count | None = None,
    ) -> None:
        """Nothing is enabled yet.

        Args:
            clauses: the clauses, in the order of the program.
            begin: called before the clauses of each firing, if something is to be noted of each.
            consume: called after the clauses of a firing if one of them is prompt.
            counted: called before the clauses for several hits at once, in place of `begin` for each.
        """
        self._begin = begin
        self._consume = consume
        self._counted = [] if counted is None else [counted]
        self._clauses = list(clauses)
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
        found: list[int] = np.unique(np.concatenate([late, *(clause.probes for clause in self._clauses)])).tolist()
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
        probes = np.unique(np.concatenate([np.zeros(0, np.intp), *(clause.probes for clause in self._clauses)]))
        combination = np.zeros(len(probes), np.int64)  # the clauses of a probe, as an index in `combinations`
        combinations = [(0, -1)]  # the combination without its last clause, and that clause
        for number, clause in enumerate(self._clauses):
            rows = np.searchsorted(probes, clause.probes)
            before = combination[rows]
            for old in np.unique(before).tolist():
                combination[rows[before == old]] = len(combinations)
                combinations.append((old, number))
        for index in np.unique(combination).tolist():
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

    def _action(self, numbers: tuple[int, ...]) -> Action:
        runs = [self._clauses[number].run for number in numbers]
        counts = [count for number in numbers if (count := self._clauses[number].count) is not None]
        if self._consume is not None and any(self._clauses[number].is_prompt for number in numbers):
            consume = self._consume
            runs.append(lambda _firing: consume())
        is_counting = len(counts) == len(runs)
        run = all_of(runs if self._begin is None else [self._begin, *runs])
        reads = reduce(or_, (self._clauses[number].reads for number in numbers))
        return Counting(run, _each([*self._counted, *counts]), reads) if is_counting else run


def all_of(runs: Sequence[Action]) -> Action:
    """An action that does several, one or more, in order."""
    if len(runs) == 1:
        return runs[0]

    def run_all(firing: Firing) -> None:
        for run in runs:
            run(firing)

    return run_all


def _each(counts: Sequence[Count]) -> Count:
    if len(counts) == 1:
        return counts[0]

    def count_all(enabling: Enabling, cpu: int, hits: int, regs: MutableSequence[int]) -> None:
        for count in counts:
            count(enabling, cpu, hits, regs)

    return count_all


def _numbers(combinations: Sequence[tuple[int, int]], index: int) -> tuple[int, ...]:
    """The clauses of a combination. It stores only its last one, since thousands on one probe would take gigabytes."""
    numbers = []
    while index:
        index, number = combinations[index]
        numbers.append(number)
    return tuple(reversed(numbers))
