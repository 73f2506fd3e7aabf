"""A checked clause -> whether all that it does is to count what hits are alike, and if so what several of them do.

Such a clause aggregates by nothing but the probe, the CPU, arguments and registers: then the number of hits in which
these are the same tells it all, and the engine can count and record them by itself (`kinst.runtime.hits.counted`). What
the hits do is not written a second time: the clause is compiled again, with aggregations that add several hits at once.
"""

from collections.abc import Callable, Iterator, MutableSequence
from typing import Final, NoReturn, Protocol

from kinst.runtime.clauses.aggregations import Key
from kinst.runtime.clauses.compile.clause import compile_clause
from kinst.runtime.clauses.compile.code import is_string, scalar_of
from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.needs import OF_THE_PROBE, needs
from kinst.runtime.clauses.state import State, Updater
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Aggregation, Clause, Expression
from kinst.runtime.hits.actions import Count, Reads
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame

_TEXTS: Final = frozenset({"probeprov", "probemod", "probefunc", "probename"})
MAY_FAULT: Final = frozenset({"/", "%"})
_WHAT: Final = "the probe, the CPU, arguments and registers"


class Store(Protocol):
    """Aggregations. `kinst.runtime.clauses.aggregations.AggregationStore` implements it."""

    def adder(self, aggregation: Aggregation) -> Callable[[int, Key, int, int, int], None]:
        """A function that adds a value several times: it takes the CPU, key, value, increment and number."""
        ...


def why_not_counted(clause: Clause) -> str:
    """Why the clause's hits cannot just be counted, as the rest of a sentence about it; empty if they can."""
    if clause.predicate is not None and not _is_alike(clause.predicate):
        return f"its predicate depends on more than {_WHAT}"
    for action in clause.actions:
        if not isinstance(action, program.Aggregate):
            return "it does more than to aggregate"
        name = action.aggregation.name.lstrip("_")
        if not all(map(_is_alike, action.keys)):
            return f"a key of @{name} depends on more than {_WHAT}"
        if not all(map(_is_alike, _values(action))):
            return f"what is aggregated in @{name} depends on more than {_WHAT}"
    return "" if clause.actions else "it records that its probe fired"


def reads_of(clause: Clause) -> Reads:
    """What a clause that can be counted looks at."""
    found = needs(clause)
    return Reads(frozenset(found.arguments), frozenset(found.registers))


def _values(action: program.Aggregate) -> Iterator[Expression]:
    return (node for node in (action.value, action.increment) if node is not None)


def _is_alike(node: Expression) -> bool:
    """Whether an expression has the same value at all hits of a probe on a CPU in which arguments and registers are the
    same, and can neither fault nor do anything."""
    if is_string(node.type):
        return isinstance(node, program.Text) or is_of_the_probe(node)
    if scalar_of(node.type) is None:
        return False
    if isinstance(node, program.Builtin):
        return is_register(node)
    operands = operands_of(node)
    return operands is not None and all(map(_is_alike, operands))


def is_of_the_probe(node: Expression) -> bool:
    """Whether a string is one of the probe's names."""
    return isinstance(node, program.Builtin) and node.name in _TEXTS


def operands_of(node: Expression) -> tuple[Expression, ...] | None:
    """What an operation is done to that has no effect and cannot fault; None for any other expression."""
    match node:
        case program.Integer():
            return ()
        case program.Unary(operand=operand):
            return (operand,)
        case program.Convert(operand=operand) if not is_string(operand.type):
            return (operand,)
        case program.Binary(operator=operator, left=left, right=right) if operator not in MAY_FAULT or is_divisor(
            right
        ):
            return left, right
        case program.Logical(left=left, right=right):
            return left, right
        case program.Conditional(condition=condition, then=then, otherwise=otherwise):
            return condition, then, otherwise
        case _:
            return None


def is_register(node: program.Builtin) -> bool:
    """Whether a number is the probe's or the CPU's, an argument or a register."""
    match node:
        case program.Builtin(name="args" | "regs", index=program.Integer(value=index)):
            return index >= 0
        case program.Builtin(name=name, index=None):
            return name in OF_THE_PROBE or (name.startswith("arg") and name[3:].isdigit())
        case _:
            return False


def is_divisor(node: Expression) -> bool:
    """Whether a division by it cannot fault: it is a number, neither 0 nor -1."""
    return isinstance(node, program.Integer) and node.value > 0


def compile_counting(clause: Clause, number: int, state: State, environment: Environment, thread: int) -> Count:
    """What several hits of a clause do at once.

    Args:
        clause: one that can be counted.
        number: its place in the session's list.
        state: what the session's clauses share; its aggregations are a `Store`.
        environment: what clauses use besides.
        thread: `Firing.thread` of whoever tells of the hits.
    """
    several = _Several(state.aggregations)  # type: ignore[arg-type]  # a Store
    run = compile_clause(clause, number, state.with_aggregations(several), environment)
    frame = TrapFrame([], _no_memory, _no_memory, _no_memory)
    firing = Firing(frame, Enabling(0, run, lambda _firing, _index: 0, 0), thread=thread)

    def count(enabling: Enabling, cpu: int, hits: int, regs: MutableSequence[int]) -> None:
        several.hits = hits
        frame.show(regs)
        firing.be(cpu, enabling)
        run(firing)

    return count


def _no_memory(*_arguments: int) -> NoReturn:
    raise AssertionError("a clause that only counts looks at no memory")


class _Several:
    """Aggregations to which each update adds `hits` hits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.hits = 0

    def updater(self, aggregation: Aggregation) -> Updater:
        """See `kinst.runtime.clauses.state.Aggregations`."""
        add = self._store.adder(aggregation)

        def update(cpu: int, key: Key, value: int, increment: int) -> None:
            add(cpu, key, value, increment, self.hits)

        return update
