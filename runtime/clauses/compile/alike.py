"""A checked clause -> a function for several records of an image that are equal in all that the clause reads.

As in `kinst.runtime.clauses.compile.counting`, such a clause does nothing but aggregate. But all that it can read of a
hit is in its record: the current task and the stack as well, and memory that was recorded. It may fault, too. Then
nothing that it added counts, and its records fire one by one: each has its fault, in its turn.
"""

from collections.abc import Callable
from typing import Final, NoReturn

from kinst.runtime.clauses.aggregations import Key
from kinst.runtime.clauses.compile.clause import compile_clause
from kinst.runtime.clauses.compile.code import is_string
from kinst.runtime.clauses.compile.counting import Store
from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.needs import CPUS, OF_THE_PROBE, nodes_of
from kinst.runtime.clauses.state import State, Updater
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Aggregation, Clause, Expression
from kinst.runtime.hits.actions import Alike, Reads
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing

_OF_TASK: Final = frozenset({"execname", "pid", "tid", "curthread", "ppid", "uid", "gid", "execargs"})
_OF_STACK: Final = frozenset({"caller", "stackdepth"})
# Their results depend on their arguments only, and these are no memory.
_PURE: Final = frozenset(
    {"basename", "cleanpath", "dirname", "getmajor", "getminor", "index", "lltostr", "rindex", "strchr", "strjoin"}
    | {"strlen", "strrchr", "strstr", "strtoll", "substr", "tolower", "toupper"}
    | {f"{way}{letter}" for way in ("hton", "ntoh") for letter in ("s", "l", "ll")}
)
_COMPUTED: Final = (
    program.Integer,
    program.Text,
    program.Unary,
    program.Binary,
    program.Logical,
    program.Conditional,
    program.Comma,
    program.Bind,
    program.Bound,
)
_MEMORY: Final = Reads(has_task=True, has_memory=True)
_NOTHING: Final = Reads()
_Addition = tuple[Callable[[int, Key, int, int, int], None], int, Key, int, int]


def reads_alike(clause: Clause) -> Reads | None:
    """What the clause reads of a record. None: it does more than to aggregate what a record says."""
    if not clause.actions or not all(isinstance(action, program.Aggregate) for action in clause.actions):
        return None
    found = _NOTHING
    for node in nodes_of(clause):
        reads = _NOTHING if isinstance(node, program.Aggregate) else _read(node)  # type: ignore[arg-type]  # no action
        if reads is None:
            return None
        found |= reads
    return found


def _read(node: Expression) -> Reads | None:
    """What one node reads, without those in it; None: more than a record has, or it has an effect."""
    match node:
        case program.Builtin():
            return _builtin(node)
        case program.Linked():
            return Reads(has_probe=True)
        case program.Load() | program.StringOf():
            return _MEMORY
        case program.StackKey(is_user=False):
            return _MEMORY | Reads(has_probe=True)
        case program.SymbolKey(kind=kind):
            return _NOTHING if kind in ("sym", "func", "mod") else None
        case program.Call(function=name):
            return _NOTHING if name in _PURE else None
        case program.Convert(operand=operand):
            # The address of a copy of a string may be another one the next time.
            return None if is_string(operand.type) and not is_string(node.type) else _NOTHING
        case _:
            return _NOTHING if isinstance(node, _COMPUTED) else None


def _builtin(node: program.Builtin) -> Reads | None:
    match node:
        case program.Builtin(name="regs", index=program.Integer(value=index)):
            return Reads(registers=frozenset({index}))
        case program.Builtin(name="args", index=program.Integer(value=index)):
            return Reads(frozenset({index}))
        case program.Builtin(index=None, name=name) if name.startswith("arg") and name[3:].isdigit():
            return Reads(frozenset({int(name[3:])}))
        case program.Builtin(index=None, name=name) if name in OF_THE_PROBE:
            return Reads(has_probe=name not in CPUS)
        case program.Builtin(index=None, name=name) if name in _OF_TASK:
            return Reads(has_task=True)
        case program.Builtin(index=None, name=name) if name in _OF_STACK:
            return _MEMORY | Reads(has_probe=True)
        case _:
            return None


class Additions:
    """Values for aggregations, in order, until it is known how often each is added. All clauses of a session have the
    same; implements `kinst.runtime.hits.actions.Additions`, and `kinst.runtime.clauses.state.Aggregations`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._new: list[_Addition] = []
        self._counted: list[tuple[int, list[_Addition]]] = []  # with how often each is to be added

    def updater(self, aggregation: Aggregation) -> Updater:
        """A function that adds one value."""
        add = self._store.adder(aggregation)
        return lambda cpu, key, value, increment: self._new.append((add, cpu, key, value, increment))

    def times(self, hits: int) -> None:
        """Count what is new so many times."""
        self._counted.append((hits, self._new))
        self._new = []

    def keep(self) -> None:
        """Add all that was counted."""
        for hits, added in self._counted:
            for add, cpu, key, value, increment in added:
                add(cpu, key, value, increment, hits)
        self._counted = []

    def drop(self) -> None:
        """Forget what is new."""
        self._new = []


def compile_alike(
    clause: Clause, number: int, reads: Reads, state: State, environment: Environment, additions: Additions
) -> Alike:
    """What a clause does for records that are alike.

    Args:
        clause: one that only aggregates what records have.
        number: its index in the session's list.
        reads: what it reads.
        state: what the session's clauses share; after exit() nothing is added.
        environment: what else clauses use.
        additions: to the session's aggregations.
    """
    run = compile_clause(clause, number, state.with_aggregations(additions), environment, on_fault=_again)

    def run_once(firing: Firing) -> None:
        if state.is_tracing:
            run(firing)

    return Alike(reads, run_once, additions)


def _again(_firing: Firing, _clause: int, _action: int, fault: Fault) -> NoReturn:
    raise fault
