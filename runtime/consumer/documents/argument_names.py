"""The actions of a clause -> a name for each value that they record, taken from the expression: `execname`, `arg0`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, assert_never

from kinst.runtime.consumer.documents.json_values import Json
from kinst.runtime.dlang import program

_SCOPES: Final = {program.Scope.THREAD: "self->", program.Scope.CLAUSE: "this->"}
_OF_KEYS: Final = {"stack-frames": "stack", "memory": "memory", "message": "message"}


def value_names(clause: program.Clause) -> tuple[str, ...]:
    """A name for each object with a "value" that `PerformedActions.of_record` makes of a record, in its order."""
    return tuple(name for action in clause.recorded for name in _of_action(action))


def _of_action(action: program.Recording) -> Iterator[str]:
    if isinstance(action, program.Performed):
        return
    match action:
        case program.Trace(value=value) | program.Print(value=value):
            yield name_of(value)
        case program.SymbolTrace(key=key):
            yield key.kind
        case program.Printf():
            yield from map(name_of, action.arguments if action.kind == "printf" else ())
        case program.StackTrace() | program.TraceMemory() | program.PrintMemory():
            pass  # their objects have no "value", but a key of `_OF_KEYS`
        case _:
            assert_never(action)


def name_of(expression: program.Expression) -> str:
    """A short name: that of the variable, function or builtin variable in an expression; "value" for any other."""
    match expression:
        case program.Builtin(name=name, index=program.Integer(value=index)):
            return f"{name}[{index}]"
        case program.Builtin(name=name) | program.Call(function=name) | program.SymbolKey(kind=name):
            return name
        case program.Read(variable=variable):
            return _SCOPES.get(variable.scope, "") + variable.name
        case program.StackKey(is_user=is_user):
            return "ustack" if is_user else "stack"
        case _:
            part = _part_of(expression)
            return "value" if part is None else name_of(part)


def _part_of(expression: program.Expression) -> program.Expression | None:
    """The operand of an expression that only converts it, or loads from it."""
    match expression:
        case program.Convert(operand=part) | program.StringOf(operand=part) | program.Load(address=part):
            return part
        case _:
            return None


def named_values(objects: Sequence[Json], names: Sequence[str]) -> Mapping[str, Json]:
    """The recorded values by name, of objects as `json_output` describes them; a second `x` is `x 2`."""
    named: dict[str, Json] = {}
    left = iter(names)
    for one in objects:
        if "value" in one:
            _add(named, next(left), one["value"])
        else:
            for key, name in _OF_KEYS.items():
                if key in one:
                    _add(named, name, one[key])
    return named


def _add(named: dict[str, Json], name: str, value: Json) -> None:
    number, shown = 1, name
    while shown in named:
        number += 1
        shown = f"{name} {number}"
    named[shown] = value
