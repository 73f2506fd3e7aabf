"""The types of an aggregation's keys where its uses differ: all rows have those of the widest, and are printed alike.

This is a deliberate deviation. libdtrace gives each clause's rows the sizes of its own keys, and compares bytes: the
same number may get two rows, each printed in columns of its own width. Here a key is a number, whatever clause it comes
from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Action, Aggregation, Clause
from kinst.runtime.dlang.types.conversions import is_integer, is_signed, size_of, wrap
from kinst.runtime.dlang.types.types import DType


def widest(kinds: Sequence[DType], others: Sequence[DType]) -> tuple[DType, ...]:
    """For each key the wider of two types; the first if they are equally wide or not integers."""
    return tuple([_wider(kind, other) for kind, other in zip(kinds, others, strict=True)])


def _wider(kind: DType, other: DType) -> DType:
    if not is_integer(kind) or not is_integer(other):
        return kind
    return other if size_of(other, 0) > size_of(kind, 0) else kind


def settled(clauses: Sequence[Clause], known: Mapping[str, Aggregation]) -> tuple[Clause, ...]:
    """The clauses with the final definition of each aggregation, by its name in `known`, and with keys of those
    types."""
    return tuple([_settled(clause, known) for clause in clauses])


def _settled(clause: Clause, known: Mapping[str, Aggregation]) -> Clause:
    actions = tuple([_action(action, known) for action in clause.actions])
    is_same = all(one is other for one, other in zip(actions, clause.actions, strict=True))
    return clause if is_same else replace(clause, actions=actions)


def _action(action: Action, known: Mapping[str, Aggregation]) -> Action:
    match action:
        case program.Aggregate(aggregation=aggregation, keys=keys):
            last = known[aggregation.name]
            fitting = tuple([_as_key(key, kind) for key, kind in zip(keys, last.keys, strict=True)])
            is_same = last is aggregation and all(one is other for one, other in zip(fitting, keys, strict=True))
            return action if is_same else replace(action, aggregation=last, keys=fitting)
        case program.ChangeAggregation(aggregation=aggregation):
            last = known[aggregation.name]
            return action if last is aggregation else replace(action, aggregation=last)
        case program.Printa(aggregations=aggregations):
            found = tuple([known[one.name] for one in aggregations])
            is_same = all(one is other for one, other in zip(found, aggregations, strict=True))
            return action if is_same else replace(action, aggregations=found)
        case _:
            return action


def _as_key(key: program.Expression, kind: DType) -> program.Expression:
    """A key converted to the type that all rows have: first truncated to its own type, as its record would be."""
    if not is_integer(kind) or not is_integer(key.type):
        return key
    if size_of(kind, 0) == size_of(key.type, 0) and is_signed(kind) == is_signed(key.type):
        return key
    if isinstance(key, program.Integer):
        return program.Integer(kind, wrap(wrap(key.value, key.type), kind))
    return program.Convert(kind, program.Convert(key.type, key))
