"""A checked clause -> whether what it does can be done later with what was recorded of a hit, and if so what does it.

Such a clause looks at the probe, the CPU, arguments, registers, the time and the program's variables, and it assigns
variables and aggregates: nobody sees when that is done, as long as it is done in the order of the hits, and before
anything that looks at variables or aggregations. It cannot fault either, since a fault is reported at once. What hits
do is not written a second time: the clause is compiled again, with the time and the thread of the record.
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

_LOOKS: Final = "looks at more than is recorded of a hit, or may fail"


def why_not_replayed(clause: Clause) -> str:
    """Why the clause's hits cannot be batched, as the rest of a sentence about it; empty if they can."""
    if clause.predicate is not None and not _is_known(clause.predicate):
        return f"its predicate {_LOOKS}"
    for action in clause.actions:
        why = _why_told(action)
        if why:
            return why
    return "" if clause.actions else "it records that its probe fired"


def _why_told(action: program.Action) -> str:
    match action:
        case program.Evaluate(expression=expression):
            return "" if _is_done_later(expression) else f"what it evaluates {_LOOKS}"
        case program.Aggregate(aggregation=aggregation):
            if not all(map(_is_known, action.keys)):
                return f"a key of {aggregation.shown} {_LOOKS}"
            if not all(_is_known(node) for node in (action.value, action.increment) if node is not None):
                return f"what is aggregated in {aggregation.shown} {_LOOKS}"
            return ""
        case _:
            return "it does more than to assign variables and to aggregate"


def reads_of_replayed(clause: Clause) -> Reads:
    """What a clause whose hits can be batched looks at."""
    found = needs(clause)
    return Reads(frozenset(found.arguments), frozenset(found.registers), found.has_time, found.has_threads)


def _is_done_later(node: Expression) -> bool:
    """Whether a statement can be executed later. Only here strings that may be NULL are assigned."""
    match node:
        case program.Assign(target=program.Read() as target, value=value) if is_string(target.variable.type):
            return _is_place(target) and _is_text(value)
        case _:
            return _is_known(node)


def _is_known(node: Expression) -> bool:
    """Whether an expression has the same value later, and cannot fault."""
    if is_string(node.type):
        return isinstance(node, program.Text) or is_of_the_probe(node)
    match node:
        case program.Read():
            return _is_place(node)
        case program.Assign(target=program.Read() as target, value=value):
            return _is_place(target) and _is_known(value)
        case program.Update(target=program.Read() as target, operator=operator, value=value):
            is_safe = operator not in MAY_FAULT or is_divisor(value)
            return is_safe and _is_place(target) and _is_known(value)
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


def _is_place(node: program.Read) -> bool:
    """Whether a variable can be found later: it has a plain value, and its keys are known."""
    return not is_block(node.variable.type) and all(map(_is_known, node.keys))


def _is_text(node: Expression) -> bool:
    """Whether something is a string that is known, or NULL."""
    if not is_string(node.type):
        return False
    return _is_place(node) if isinstance(node, program.Read) else _is_known(node)


def compile_replay(clause: Clause, number: int, state: State, environment: Environment, time_base: int) -> Replay:
    """What a recorded hit of a clause does.

    Args:
        clause: one whose hits can be batched.
        number: its place in the session's list.
        state: what the session's clauses share; it is tracing until what is recorded means nothing any more.
        environment: what clauses use besides.
        time_base: what is added to the machine's time to give tracing's (ns).
    """
    recorded = {"time": f"time = firing.time + {time_base}", "thread": "thread = firing.key"}
    return compile_clause(clause, number, state, environment, recorded)
