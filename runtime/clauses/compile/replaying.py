"""A checked clause -> whether it can run later, over a record of its hit, and if so the function that does it.

Such a clause reads the probe, the CPU, arguments, registers, the time and the program's variables, and it assigns
variables and aggregates. It does not matter when that happens, as long as it happens in the order of the hits, and
before anything else reads variables or aggregations. The clause must not fault, since a fault fires ERROR at once. It
must not read memory, which may have changed by then: that would silently give another value. The clause is compiled a
second time, with the time and the thread of the record in place of those of the CPU.
"""

from typing import Final

from kinst.runtime.clauses.compile.clause import compile_clause
from kinst.runtime.clauses.compile.code import is_string, scalar_of
from kinst.runtime.clauses.compile.counting import MAY_FAULT, is_divisor, is_of_the_probe, is_register, operands_of
from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.needs import TIMES, needs
from kinst.runtime.clauses.state import State
from kinst.runtime.clauses.variables import is_block
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Clause, Expression
from kinst.runtime.hits.actions import Reads
from kinst.runtime.hits.replayed import Replay

_READS: Final = "reads more than is recorded of a hit, or may fail"


def why_not_replayed(clause: Clause) -> str:
    """Why the clause's hits cannot be replayed, as the rest of a sentence about it; empty if they can."""
    if clause.predicate is not None and not _is_known(clause.predicate):
        return f"its predicate {_READS}"
    for action in clause.actions:
        why = _why_not(action)
        if why:
            return why
    return "" if clause.actions else "it records that its probe fired"


def _why_not(action: program.Action) -> str:
    match action:
        case program.Evaluate(expression=expression):
            return "" if _is_deferrable(expression) else f"what it evaluates {_READS}"
        case program.Aggregate(aggregation=aggregation):
            if not all(map(_is_known, action.keys)):
                return f"a key of {aggregation.shown} {_READS}"
            if not all(_is_known(node) for node in (action.value, action.increment) if node is not None):
                return f"what is aggregated in {aggregation.shown} {_READS}"
            return ""
        case _:
            return "it does more than to assign variables and to aggregate"


def reads_of_replayed(clause: Clause) -> Reads:
    """What must be recorded of each hit for a clause whose hits can be replayed."""
    found = needs(clause)
    return Reads(frozenset(found.arguments), frozenset(found.registers), found.has_time, found.has_threads)


def _is_deferrable(node: Expression) -> bool:
    """Whether a statement can be executed later. Only as a statement of its own may a string that can be NULL be
    assigned: any other use might read it, and fault."""
    match node:
        case program.Assign(target=program.Read() as target, value=value) if is_string(target.variable.type):
            return _is_lvalue(target) and _is_text(value)
        case _:
            return _is_known(node)


def _is_known(node: Expression) -> bool:
    """Whether an expression has the same value later, and cannot fault."""
    if is_string(node.type):
        return isinstance(node, program.Text) or is_of_the_probe(node)
    match node:
        case program.Read():
            return _is_lvalue(node)
        case program.Assign(target=program.Read() as target, value=value):
            return _is_lvalue(target) and _is_known(value)
        case program.Update(target=program.Read() as target, operator=operator, value=value):
            is_safe = operator not in MAY_FAULT or is_divisor(value)
            return is_safe and _is_lvalue(target) and _is_known(value)
        case program.Comma(left=left, right=right):
            return _is_known(left) and _is_known(right)
        case program.Bind(value=value, body=body):
            return _is_known(value) and _is_known(body)
        case program.Bound():
            return scalar_of(node.type) is not None
        case _:
            return _is_computed(node)


def _is_computed(node: Expression) -> bool:
    match node:
        case program.Builtin(name=name) if name in TIMES:
            return True
        case program.Builtin():
            return scalar_of(node.type) is not None and is_register(node)
        case program.Binary(left=left, right=right) if is_string(left.type):
            return _is_text(left) and _is_text(right)
        case _:
            operands = operands_of(node) if scalar_of(node.type) is not None else None
            return operands is not None and all(map(_is_known, operands))


def _is_lvalue(node: program.Read) -> bool:
    """Whether a variable can be accessed later: it is not a struct or array, which are memory, and its keys are
    known."""
    return not is_block(node.variable.type) and all(map(_is_known, node.keys))


def _is_text(node: Expression) -> bool:
    """Whether a string is known later; it may be NULL."""
    if not is_string(node.type):
        return False
    return _is_lvalue(node) if isinstance(node, program.Read) else _is_known(node)


def compile_replay(clause: Clause, number: int, state: State, environment: Environment, time_base: int) -> Replay:
    """The function for a recorded hit of a clause.

    Args:
        clause: one whose hits can be replayed.
        number: its index in the session's list.
        state: what the session's clauses share; it is tracing until the hits before exit() have been replayed.
        environment: what else clauses use.
        time_base: ns to add to the machine's time, in records, to get tracing's time.
    """
    recorded = {"time": f"time = firing.time + {time_base}", "thread": "thread = firing.key"}
    return compile_clause(clause, number, state, environment, recorded)
