"""A checked clause -> whether its hits can be counted, and if so a function for several equal hits at once.

Such a clause does nothing but aggregate, and it reads nothing but the probe, the CPU, arguments and registers. Hits in
which these are equal have the same effect, and aggregations do not depend on the order of hits: so the engine counts or
records them by itself (`kinst.runtime.hits.counted`), and Python runs once for all equal ones. For that function the
clause is compiled again, with aggregations that add several hits at once: its actions are implemented only once.

What is admitted here must be exact. An expression that could fault would report its fault late, and once for many hits;
one that reads anything else would silently aggregate the value of another hit.
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
_READABLE: Final = "the probe, the CPU, arguments and registers"


class Store(Protocol):
    """Aggregations. `kinst.runtime.clauses.aggregations.AggregationStore` implements it."""

    def adder(self, aggregation: Aggregation) -> Callable[[int, Key, int, int, int], None]:
        """A function that adds a value several times: it takes the CPU, key, value, increment and number."""
        ...


def why_not_counted(clause: Clause) -> str:
    """Why the clause's hits cannot just be counted, as the rest of a sentence about it; empty if they can."""
    if clause.predicate is not None and not _is_equal(clause.predicate):
        return f"its predicate depends on more than {_READABLE}"
    for action in clause.actions:
        if not isinstance(action, program.Aggregate):
            return "it does more than to aggregate"
        name = action.aggregation.name.lstrip("_")
        if not all(map(_is_equal, action.keys)):
            return f"a key of @{name} depends on more than {_READABLE}"
        if not all(map(_is_equal, _values(action))):
            return f"what is aggregated in @{name} depends on more than {_READABLE}"
    return "" if clause.actions else "it records that its probe fired"


def reads_of(clause: Clause) -> Reads:
    """The arguments and registers that a clause reads whose hits can be counted."""
    found = needs(clause)
    return Reads(frozenset(found.arguments), frozenset(found.registers))


def _values(action: program.Aggregate) -> Iterator[Expression]:
    return (node for node in (action.value, action.increment) if node is not None)


def _is_equal(node: Expression) -> bool:
    """Whether an expression has the same value at all hits of a probe on a CPU in which arguments and registers are
    equal, has no effect, and cannot fault."""
    if is_string(node.type):
        return isinstance(node, program.Text) or is_of_the_probe(node)
    if scalar_of(node.type) is None:
        return False
    if isinstance(node, program.Builtin):
        return is_register(node)
    operands = operands_of(node)
    return operands is not None and all(map(_is_equal, operands))


def is_of_the_probe(node: Expression) -> bool:
    """Whether a string is one of the probe's names."""
    return isinstance(node, program.Builtin) and node.name in _TEXTS


def operands_of(node: Expression) -> tuple[Expression, ...] | None:
    """The operands of an operation that has no effect and cannot fault by itself; None for any other expression."""
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
    """Whether a number is the probe's or the CPU's, an argument or a register. A negative index is a fault."""
    match node:
        case program.Builtin(name="args" | "regs", index=program.Integer(value=index)):
            return index >= 0
        case program.Builtin(name=name, index=None):
            return name in OF_THE_PROBE or (name.startswith("arg") and name[3:].isdigit())
        case _:
            return False


def is_divisor(node: Expression) -> bool:
    """Whether a division by it cannot fault: it is a positive constant."""
    return isinstance(node, program.Integer) and node.value > 0


def compile_counting(clause: Clause, number: int, state: State, environment: Environment, thread: int) -> Count:
    """A function for several equal hits of a clause.

    Args:
        clause: one whose hits can be counted.
        number: its index in the session's list.
        state: what the session's clauses share; its aggregations are a `Store`.
        environment: what else clauses use.
        thread: `Firing.thread` of the deliverer.
    """
    several = _SeveralHits(state.aggregations)  # type: ignore[arg-type]  # a Store
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
    raise AssertionError("a clause whose hits are counted reads no memory")


class _SeveralHits:
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
