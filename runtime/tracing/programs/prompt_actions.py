"""Clauses -> the actions after which what they printed is consumed at once, and not at the next switchrate."""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.dlang.program import ChangeAggregation, Clause, Commit, Printa, Speculate

_ON_AGGREGATIONS: Final = (Printa, ChangeAggregation)


def prompt_actions(clauses: Sequence[Clause]) -> tuple[type, ...]:
    """The actions after which the consumer must run at once: those on aggregations, and commit() if a speculation may
    hold one of them."""
    speculative = [clause.actions for clause in clauses if any(isinstance(one, Speculate) for one in clause.actions)]
    is_any = any(isinstance(action, _ON_AGGREGATIONS) for actions in speculative for action in actions)
    return (*_ON_AGGREGATIONS, Commit) if is_any else _ON_AGGREGATIONS
