"""A checked clause -> what of a hit it looks at, for those who have only a part of a hit."""

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
    """What a clause looks at.

    Who only has records of an image or of QEMU refuses what is in `others`: `tracing.standalone.admission` and
    `live.fields`. A new field is looked at there as well: what they do not know would be 0.
    """

    arguments: set[int] = field(default_factory=set)  # arg0 and args[0] are 0
    registers: set[int] = field(default_factory=set)  # indices of regs[]
    others: set[str] = field(default_factory=set)  # as a program has them: execname, stack()
    has_time: bool = False  # timestamp is among them
    has_threads: bool = False  # it has variables of a thread (self->)
    has_cpu: bool = False  # cpu or curcpu is among them


def needs(clause: Clause) -> Needs:
    """What a clause looks at, besides its probe and memory."""
    found = Needs()
    for node in _nodes(clause):
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


def _nodes(clause: Clause) -> Iterator[program.Expression | program.Action]:
    """All expressions and actions of a clause, in no order."""
    left: list[object] = [clause.predicate, *clause.actions]
    while left:
        node = left.pop()
        if isinstance(node, tuple):
            left += node
        elif isinstance(node, _NODES):
            yield node
            left += [getattr(node, one.name) for one in fields(node)]
