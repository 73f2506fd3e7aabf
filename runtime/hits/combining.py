"""The clauses of one probe -> what a hit of it does, and its delivery: the dearest that a clause needs."""

from collections.abc import Callable, MutableSequence, Sequence
from functools import reduce
from operator import or_
from typing import Protocol, TypeVar

from kinst.runtime.hits.actions import NOTHING, Alike, Batched, Count, Dispatched, Reads, counted_once
from kinst.runtime.hits.replayed import Replay
from kinst.runtime.trap.delivery import DISPATCHED, Delivery, Way
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.values import dataclass

Run = Callable[[Firing], None]


class Settle(Protocol):
    """See `kinst.runtime.hits.recorded.RecordedSites.settle`."""

    def __call__(self, _firing: Firing | None = None) -> None:
        """The firing that comes next makes no difference."""
        ...


@dataclass(frozen=True, slots=True)
class Replays:
    """What clauses that are replayed need of the records of hits."""

    time_base: int  # added to the machine's time, it is what clauses see (ns)
    settle: Settle  # replays what was recorded
    learn: Run | None  # a hit was dispatched: its thread is to be recorded; None: threads cannot be


@dataclass(frozen=True, slots=True)
class ClauseAction:
    """What a hit means to one clause. `is_prompt`: the consumer must act as soon as it has run."""

    run: Run
    delivery: Delivery = DISPATCHED
    is_prompt: bool = False
    reads: Reads = NOTHING
    count: Count | None = None  # of what is counted or recorded
    replay: Replay | None = None  # of what is replayed
    alike: Alike | None = None  # of what only aggregates, where an image recorded the hits


class Combining:
    """Makes the actions of probes."""

    def __init__(
        self,
        begin: Run | None,
        consume: Callable[[], None] | None,
        counted: Count | None,
        replays: Replays | None,
        *,
        takes_together: bool = False,
    ) -> None:
        """What actions do besides their clauses.

        Args:
            begin: called before the clauses of each firing, if something is to be noted of each.
            consume: called after the clauses of a firing if one of them is prompt.
            counted: called before the clauses for several hits at once, in place of `begin` for each.
            replays: settles records before anything is dispatched; None: nothing is replayed.
            takes_together: records of an image that are alike may be taken together: no clause sees what others have
                aggregated until then, or ends the run.
        """
        self._begin, self._consume, self._replays = begin, consume, replays
        self._takes_together = takes_together and begin is None and counted is None
        self._counted = [] if counted is None else [counted]

    def action(self, clauses: Sequence[ClauseAction]) -> Batched | Dispatched:
        """What the probe of these clauses does, one or more, in their order."""
        dearest = max((clause.delivery for clause in clauses), key=lambda one: one.way)
        match dearest.way:
            case Way.DISPATCH:
                return Dispatched(self._now(clauses), dearest.why, self._alike(clauses))
            case Way.REPLAY:
                reads = _reads_of(clauses)
                return Batched(self._now(clauses, reads), dearest, reads, all_of([_later(one) for one in clauses]))
            case _:
                counts = [clause.count for clause in clauses if clause.count is not None]
                count = _each([*self._counted, *counts])
                run = self._after_begin([clause.run for clause in clauses])
                return Batched(run, dearest, _reads_of(clauses), counted_once(count), count, self._alike(clauses))

    def _alike(self, clauses: Sequence[ClauseAction]) -> Alike | None:
        each = [clause.alike for clause in clauses if clause.alike is not None]
        if not self._takes_together or len(each) < len(clauses):
            return None
        reads = reduce(or_, (one.reads for one in each))
        return each[0] if len(each) == 1 else Alike(reads, all_of([one.run for one in each]), each[0].additions)

    def _after_begin(self, runs: Sequence[Run]) -> Run:
        return all_of(runs if self._begin is None else [self._begin, *runs])

    def _now(self, clauses: Sequence[ClauseAction], reads: Reads = NOTHING) -> Run:
        """What a dispatched hit does. Earlier hits are replayed before anything else: their output comes first."""
        runs = [clause.run for clause in clauses]
        if self._consume is not None and any(clause.is_prompt for clause in clauses):
            consume = self._consume
            runs.append(lambda _firing: consume())
        if self._replays is not None:
            runs.insert(0, self._replays.settle)
            if reads.has_thread and self._replays.learn is not None:
                runs.append(self._replays.learn)
        return self._after_begin(runs)


def _reads_of(clauses: Sequence[ClauseAction]) -> Reads:
    return reduce(or_, (clause.reads for clause in clauses))


def _later(clause: ClauseAction) -> Replay:
    if clause.replay is not None:
        return clause.replay
    assert clause.count is not None, "what cannot be done later is dispatched"
    return counted_once(clause.count)


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
