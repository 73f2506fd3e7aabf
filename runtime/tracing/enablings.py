"""Clauses and the probes that they match -> one action for each probe, and DTrace's enabling ids (epids).

Each (clause, probe) is one enabling. A probe runs its enablings in the order of the program, so probes with the same
clauses share one action; probes are columns, since there may be millions.
"""

from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.providers.provider import Action, Probe, Providers
from kinst.runtime.tracing.surroundings import Replays
from kinst.runtime.trap.recorded import NOTHING, Count, Counting, Reads, Replayed, counted_once
from kinst.runtime.trap.replayed import Replay
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
    replay: Replay | None = None  # what a recorded hit does; None: hits cannot be told later


class Enablings:
    """All enablings of a session."""

    def __init__(
        self,
        clauses: Sequence[Enabled],
        begin: Action | None,
        consume: Callable[[], None] | None = None,
        counted: Count | None = None,
        replays: Replays | None = None,
    ) -> None:
        """Nothing is enabled yet.

        Args:
            clauses: the clauses, in the order of the program.
            begin: called before the clauses of each firing, if something is to be noted of each.
            consume: called after the clauses of a firing if one of them is prompt.
            counted: called before the clauses for several hits at once, in place of `begin` for each.
            replays: what clauses need that are told of hits later; None: there is none.
        """
        self._begin = begin
        self._consume = consume
        self._counted = [] if counted is None else [counted]
        self._replays = replays if any(clause.replay is not None for clause in clauses) else None
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
        clauses = [self._clauses[number] for number in numbers]
        runs = [clause.run for clause in clauses]
        counts = [clause.count for clause in clauses if clause.count is not None]
        if self._consume is not None and any(clause.is_prompt for clause in clauses):
            consume = self._consume
            runs.append(lambda _firing: consume())
        reads = reduce(or_, (clause.reads for clause in clauses))
        if len(counts) == len(runs):
            return Counting(self._after_begin(runs), _each([*self._counted, *counts]), reads)
        return self._after_begin(runs) if self._replays is None else self._in_order(self._replays, clauses, runs, reads)

    def _after_begin(self, runs: Sequence[Action]) -> Action:
        return all_of(runs if self._begin is None else [self._begin, *runs])

    def _in_order(self, replays: Replays, clauses: Sequence[Enabled], runs: Sequence[Action], reads: Reads) -> Action:
        """An action that is told of a hit after all that is told later of hits before, or is itself told later."""
        settle = replays.settle
        told: list[Action] = [settle, *runs]
        later = [replay for clause in clauses if (replay := _later(clause)) is not None]
        if len(later) < len(runs):
            return self._after_begin(told)
        if reads.has_thread and replays.learn is not None:
            told.append(replays.learn)
        return Replayed(self._after_begin(told), all_of(later), reads)


def _later(clause: Enabled) -> Replay | None:
    """What a recorded hit does; None if it must be told now."""
    return counted_once(clause.count) if clause.replay is None and clause.count is not None else clause.replay


_Firing = TypeVar("_Firing", bound=Firing)


def all_of(runs: Sequence[Callable[[_Firing], None]]) -> Callable[[_Firing], None]:
    """An action that does several, one or more, in order."""
    if len(runs) == 1:
        return runs[0]

    def run_all(firing: _Firing) -> None:
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
