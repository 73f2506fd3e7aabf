"""A checked clause -> whether all that it does is to count, and if so what several hits of a probe do at once.

Such a clause looks at nothing but the probe and the CPU: then the number of hits tells it all, and the engine can count
them by itself (`kinst.runtime.trap.counted`). What the hits do is not written a second time: the clause is compiled
again, with aggregations that add a number of hits in place of one.
"""

import copy
from collections.abc import Callable
from typing import Final, Protocol

from kinst.runtime.clauses.aggregations import Key
from kinst.runtime.clauses.compile.clause import compile_clause
from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.needs import OF_THE_PROBE
from kinst.runtime.clauses.state import State, Updater
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation, Clause, Expression
from kinst.runtime.trap.trap import Enabling, Firing

_MAY_FAULT: Final = frozenset({"/", "%"})
Count = Callable[[int, int, int], None]  # probe, CPU, hits


class Store(Protocol):
    """Aggregations. `kinst.runtime.clauses.aggregations.AggregationStore` implements it."""

    def adder(self, aggregation: Aggregation) -> Callable[[int, Key, int], None]:
        """A function that adds to a count(): it takes the CPU, key and number."""
        ...


def why_not_counted(clause: Clause) -> str:
    """Why the clause's hits cannot just be counted, as the rest of a sentence about it; empty if they can."""
    if clause.predicate is not None and not _is_of_the_probe(clause.predicate):
        return "its predicate depends on more than the probe and the CPU"
    for action in clause.actions:
        if not isinstance(action, program.Aggregate):
            return "it does more than to aggregate"
        name = action.aggregation.name.lstrip("_")
        if action.aggregation.function is not AggregatingFunction.COUNT:
            return f"@{name} is no count()"
        if not all(map(_is_of_the_probe, action.keys)):
            return f"a key of @{name} depends on more than the probe and the CPU"
    return "" if clause.actions else "it records that its probe fired"


def _is_of_the_probe(node: Expression) -> bool:
    """Whether an expression has the same value at every hit of a probe on a CPU, and can neither fault nor do
    anything."""
    match node:
        case program.Integer() | program.Text():
            return True
        case program.Builtin(name=name, index=None):
            return name in OF_THE_PROBE
        case program.Unary(operand=operand):
            return _is_of_the_probe(operand)
        case program.Binary(operator=operator, left=left, right=right):
            return operator not in _MAY_FAULT and _is_of_the_probe(left) and _is_of_the_probe(right)
        case program.Logical(left=left, right=right):
            return _is_of_the_probe(left) and _is_of_the_probe(right)
        case _:
            return False


def compile_counting(clause: Clause, number: int, state: State, environment: Environment, blank: Firing) -> Count:
    """What several hits of a clause do at once.

    Args:
        clause: one that can be counted.
        number: its place in the session's list.
        state: what the session's clauses share; its aggregations are a `Store`.
        environment: what clauses use besides.
        blank: a firing that nobody else uses.
    """
    several = _Several(state.aggregations)  # type: ignore[arg-type]  # a Store
    own = copy.copy(state)
    own.aggregations, own.is_tracing = several, True
    run = compile_clause(clause, number, own, environment)

    def count(probe: int, cpu: int, hits: int) -> None:
        several.hits, blank.cpu = hits, cpu
        blank.enabling = Enabling(probe, run, _no_argument, 0)
        run(blank)

    return count


def _no_argument(_firing: Firing, _index: int) -> int:
    return 0


class _Several:
    """Aggregations to which each update adds `hits`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.hits = 0

    def updater(self, aggregation: Aggregation) -> Updater:
        """See `kinst.runtime.clauses.state.Aggregations`."""
        add = self._store.adder(aggregation)

        def update(cpu: int, key: Key, _value: int, _increment: int) -> None:
            add(cpu, key, self.hits)

        return update
