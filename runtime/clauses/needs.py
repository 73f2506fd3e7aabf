"""A checked clause -> what it reads of a hit. Records of hits hold only a part of one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Clause, Scope

CPUS: Final = frozenset({"cpu", "curcpu"})
# The same at every hit of a probe on a CPU.
OF_THE_PROBE: Final = CPUS | {"probeprov", "probemod", "probefunc", "probename", "id", "epid"}
TIMES: Final = frozenset({"timestamp", "vtimestamp"})
_NODES: Final = program.Expression | program.Action


@dataclass(slots=True)
class Needs:
    """What a clause reads of a hit.

    `tracing.standalone.admission` and `live.fields`, which have only records, refuse a clause with `others` that no
    record has. A new field must be handled in both: what they do not know of would silently be 0.
    """

    arguments: set[int] = field(default_factory=set)  # arg0 and args[0] are 0
    registers: set[int] = field(default_factory=set)  # indices of regs[]
    others: set[str] = field(default_factory=set)  # as a program spells them: execname, stack()
    has_time: bool = False  # it reads timestamp or vtimestamp
    has_threads: bool = False  # it uses variables of a thread (self->)
    has_cpu: bool = False  # it reads cpu or curcpu


def needs(clause: Clause) -> Needs:
    """What a clause reads, besides names of its probe and memory."""
    found = Needs()
    for node in nodes_of(clause):
        match node:
            case program.Builtin():
                _note(node, found)
            case program.Read(variable=variable):
                found.has_threads |= variable.scope is Scope.THREAD
            case program.StackKey(is_user=is_user) | program.StackTrace(is_user=is_user):
                found.others.add("ustack()" if is_user else "stack()")
            case _:
                pass
    return found


def _note(node: program.Builtin, found: Needs) -> None:
    name, index = node.name, node.index
    number = index.value if isinstance(index, program.Integer) else None
    argument = re.fullmatch(r"arg([0-9])", name)
    if argument is not None:
        found.arguments.add(int(argument[1]))
    elif name in ("args", "regs"):
        if number is not None:
            (found.arguments if name == "args" else found.registers).add(number)
    elif name in TIMES:
        found.has_time = True
    elif name in CPUS:
        found.has_cpu = True
    elif name not in OF_THE_PROBE:
        found.others.add(name if index is None else f"{name}[]")


def nodes_of(clause: Clause) -> Iterator[program.Expression | program.Action]:
    """All expressions and actions of a clause, in no order."""
    left: list[object] = [clause.predicate, *clause.actions]
    while left:
        node = left.pop()
        if isinstance(node, tuple):
            left += node
        elif isinstance(node, _NODES):
            yield node
            left += [getattr(node, one.name) for one in fields(node)]
