"""The clauses of a session -> what they do for records of an image that are alike, and whether these may be taken
together at all."""

from collections.abc import Iterable
from typing import Final

from kinst.runtime.clauses.compile.alike import Additions, compile_alike, reads_alike
from kinst.runtime.clauses.compile.counting import Store
from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.state import State
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Clause
from kinst.runtime.hits.actions import Alike
from kinst.runtime.providers.dtrace import BEGIN, END
from kinst.runtime.providers.provider import Identifiers, Providers

# They see what was aggregated until then, or end the run, or change something else at once.
_WATCHING: Final = (
    *(program.Printa, program.ChangeAggregation, program.Commit, program.Exit, program.Destructive),
    program.Snapshot,
)
_TIMERS: Final = "profile"


class AlikeHits:
    """Those of one session. Without records, hits that are alike are counted by the engine."""

    def __init__(self, store: Store, *, has_records: bool) -> None:
        """`store` has the session's aggregations."""
        self._additions = Additions(store) if has_records else None

    def of(self, clause: Clause, number: int, state: State, environment: Environment) -> Alike | None:
        """What the clause of this number does; None: it wants each hit by itself."""
        reads = None if self._additions is None else reads_alike(clause)
        if reads is None or self._additions is None:
            return None
        return compile_alike(clause, number, reads, state, environment, self._additions)


def watches(clause: Clause) -> bool:
    """Whether a clause sees what was aggregated until its probe fires, or changes something else at once."""
    return any(isinstance(action, _WATCHING) for action in clause.actions)


def takes_together(clauses: Iterable[tuple[Clause, Identifiers]], providers: Providers) -> bool:
    """Whether it makes no difference that hits are aggregated before those of other probes that came earlier. Timers
    fire when all earlier records have."""
    for clause, probes in clauses:
        if watches(clause):
            for identifier in probes.tolist():
                probe = providers.probe(identifier)
                if identifier not in (BEGIN, END) and (probe is None or probe.provider != _TIMERS):
                    return False
    return True
