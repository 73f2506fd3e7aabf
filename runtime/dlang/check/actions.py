"""Statements of a clause: actions, aggregations, and expressions that are evaluated for their effect."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.dlang import formats, program
from kinst.runtime.dlang.check import aggregations, functions, prototypes
from kinst.runtime.dlang.check.action_order import (
    note_commit,
    note_destructive,
    note_exit,
    note_recording,
    note_speculate,
)
from kinst.runtime.dlang.check.checking import Checking
from kinst.runtime.dlang.check.signatures import ACTIONS, AGGREGATING
from kinst.runtime.dlang.check.stacks import positive, stack_trace, symbol_key
from kinst.runtime.dlang.program import Action, Expression
from kinst.runtime.dlang.record_layout import action_count, record_size
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.words import STACKS, SYMBOLS
from kinst.runtime.dlang.types.conversions import is_dynamic, is_integer, is_string_like, is_void
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import INT, INT64, LONG, STACK, STRING, SYMBOL, UINT64, UINTPTR, bare
from kinst.targets.c_types import Array

RESTORE: Final = b"."  # libdtrace replaces the path of freopen("") by this one, which cannot be a file
_LARGEST: Final = 1 << 20  # bytes of tracemem and printm

__all__ = ["action_count", "actions_of", "record_size"]


def actions_of(node: tree.ExpressionStatement, checking: Checking) -> tuple[Action, ...]:
    """The actions of a statement. Raises DError."""
    expression = node.expression
    if isinstance(expression, tree.Assignment) and expression.operator == "=":
        target = aggregations.aggregation_of(expression.target)
        if target is not None:
            return (aggregations.aggregate(target, expression.value, node.span, checking),)
    target = aggregations.aggregation_of(expression)
    if target is not None:
        raise aggregations.null_effect(target, checking)
    if not isinstance(expression, tree.Call) or not functions.is_function(expression.function, checking):
        return (program.Evaluate(checking.expression(expression)),)
    if expression.function in ACTIONS:
        return (_action(expression, checking),)
    if expression.function in AGGREGATING:
        return (program.Evaluate(functions.call(expression, checking)),)  # raises D_CG_EXPR, after checking arguments
    return (program.Evaluate(checking.expression(expression)),)


def _action(node: tree.Call, checking: Checking) -> Action:
    name = node.function
    if name in STACKS:
        note_recording(checking.state, node.span)
        return stack_trace(node, checking)
    if name in SYMBOLS:
        note_recording(checking.state, node.span)
        return program.SymbolTrace(symbol_key(node, checking))
    return _CHECKS[name](node, checking)


def _arguments(node: tree.Call, checking: Checking) -> list[Expression]:
    """The arguments, checked against the prototype's number and types of parameters."""
    values = [functions.value(argument, checking) for argument in node.arguments]
    prototypes.check(f"{node.function}( )", ACTIONS[node.function], values, node.span)
    return values


def _require_value(node: tree.Expression, value: Expression, action: str, tags: str) -> None:
    """trace() and print() take only expressions with a value. Raises DError: `tags` followed by _VOID, _AGG or _DYN."""
    if is_void(value.type):
        raise DError(f"{tags}_VOID", f"{action}( ) may not be applied to a void expression", node.span)
    if isinstance(node, tree.AggregationName):
        raise DError(f"{tags}_AGG", f"{action}( ) may not be applied to an aggregation", node.span)
    if value.type in (STACK, SYMBOL):
        text = "action may not be called from a D expression (D program context required)"
        raise DError("D_CG_EXPR", text, node.span)
    if is_dynamic(value.type):
        raise DError(f"{tags}_DYN", f"{action}( ) may not be applied to a translated pointer", node.span)


# -- recording data ---------------------------------------------------------------------------------------------------


def _trace(node: tree.Call, checking: Checking) -> Action:
    value = _arguments(node, checking)[0]
    _require_value(node.arguments[0], value, "trace", "D_TRACE")
    note_recording(checking.state, node.span)
    return program.Trace(value)


def _print(node: tree.Call, checking: Checking) -> Action:
    value = _arguments(node, checking)[0]
    _require_value(node.arguments[0], value, "print", "D_PRINT")
    note_recording(checking.state, node.span)
    return program.Print(value, value.type)


def _trace_memory(node: tree.Call, checking: Checking) -> Action:
    address, size, *more = _arguments(node, checking)
    if not is_integer(address.type) and not functions.is_address(address.type):
        kind = describe(address.type)
        span = node.arguments[0].span
        raise prototypes.wrong_argument(
            "tracemem( ) argument", 1, "pointer or integer", kind, span, tag="D_TRACEMEM_ADDR"
        )
    count = _constant_size(node, 1, size, "D_TRACEMEM_SIZE")
    if len(more) > 1:
        raise DError("D_TRACEMEM_ARGS", "tracemem( ) prototype mismatch: expected at most 3 args", node.span)
    if more and not functions.is_number(more[0].type):
        text = "tracemem( ) dynamic size (argument #3) must be of scalar type"
        raise DError("D_TRACEMEM_DYNSIZE", text, node.arguments[2].span)
    note_recording(checking.state, node.span)
    dynamic = checking.convert(more[0], UINT64) if more else None
    return program.TraceMemory(checking.convert(address, UINTPTR), count, dynamic)


def _constant_size(node: tree.Call, place: int, value: Expression, tag: str) -> int:
    size = positive(value)
    if size is None:
        text = f"{node.function}( ) argument #{place + 1} must be a non-zero positive integral constant expression"
        raise DError(tag, text, node.arguments[place].span)
    return min(size, _LARGEST)


def _print_memory(node: tree.Call, checking: Checking) -> Action:
    size, reference = _arguments(node, checking)
    count = _constant_size(node, 0, size, "D_PRINTM_SIZE")
    if not functions.is_address(reference.type):
        what, kind = "printm( ) argument", describe(reference.type)
        raise prototypes.wrong_argument(what, 2, "pointer", kind, node.arguments[1].span, tag="D_PRINTM_ADDR")
    note_recording(checking.state, node.span)
    return program.PrintMemory(count, checking.convert(reference, UINTPTR))


def _printf(node: tree.Call, checking: Checking) -> Action:
    """printf, system and freopen: a format and the arguments that it takes."""
    kind = node.function
    _, *arguments = _arguments(node, checking)
    text = _format_text(node, checking)
    parsed = formats.parse(text, node.arguments[0].span)
    is_restoring = kind == "freopen" and not text and not arguments
    if not is_restoring:
        types = [argument.type for argument in arguments]
        formats.check_printf(parsed, types, function=kind, span=node.span)
    if kind == "printf":
        note_recording(checking.state, node.span)
    else:
        note_destructive(checking.state, node.function, node.span)
    return program.Printf(kind, text, tuple(_printed(argument, checking) for argument in arguments))


def _format_text(node: tree.Call, checking: Checking) -> bytes:
    first = node.arguments[0]
    if not isinstance(first, tree.StringLiteral):
        what, kind = f"{node.function}( ) argument", describe(functions.value(first, checking).type)
        raise prototypes.wrong_argument(what, 1, "string constant", kind, first.span, tag="D_PRINTF_ARG_FMT")
    if node.function == "freopen" and first.value == RESTORE:
        raise DError("D_FREOPEN_INVALID", 'freopen( ) argument #1 cannot be "."', first.span)
    return first.value


def _printed(value: Expression, checking: Checking) -> Expression:
    """The value to record. A char array of unknown length, such as a flexible array member, is read up to its NUL: its
    type has no size that a record could have."""
    kind = bare(value.type)
    is_open = isinstance(kind, Array) and not kind.length and is_string_like(kind)
    return checking.convert(value, STRING) if is_open else value


def _printa(node: tree.Call, checking: Checking) -> Action:
    return aggregations.printa(node, checking)


def _change(node: tree.Call, checking: Checking) -> Action:
    return aggregations.change(node, checking)


# -- control ----------------------------------------------------------------------------------------------------------


def _number(node: tree.Call, checking: Checking) -> Expression:
    return checking.convert(_arguments(node, checking)[0], INT)


def _exit(node: tree.Call, checking: Checking) -> Action:
    status = _number(node, checking)
    note_exit(checking.state, node.span)
    return program.Exit(status)


def _speculation(node: tree.Call, checking: Checking) -> Expression:
    """The number of a speculation, with all its bits: truncating it could turn a wrong number into a valid one."""
    return checking.convert(_arguments(node, checking)[0], INT64)


def _speculate(node: tree.Call, checking: Checking) -> Action:
    number = _speculation(node, checking)
    note_speculate(checking.state, node.span)
    return program.Speculate(number)


def _commit(node: tree.Call, checking: Checking) -> Action:
    number = _speculation(node, checking)
    note_commit(checking.state, node.span)
    return program.Commit(number)


def _discard(node: tree.Call, checking: Checking) -> Action:
    return program.Discard(_speculation(node, checking))


def _destructive(node: tree.Call, checking: Checking) -> Action:
    """stop, raise, breakpoint, panic, chill, skip."""
    values = _arguments(node, checking)
    note_destructive(checking.state, node.function, node.span)
    return program.Destructive(node.function, checking.convert(values[0], LONG) if values else None)


def _override(node: tree.Call, checking: Checking) -> Action:
    """override(): the value with all its bits, since the function may return a pointer."""
    values = [functions.value(argument, checking) for argument in node.arguments]
    if len(values) == 1 and functions.is_address(values[0].type):
        values = [checking.convert(values[0], UINT64)]
    prototypes.check("override( )", ACTIONS["override"], values, node.span)
    note_destructive(checking.state, node.function, node.span)
    return program.Destructive(node.function, checking.convert(values[0], INT64))


def _snapshot(node: tree.Call, checking: Checking) -> Action:
    """Destructive, as all that writes to files of the host."""
    values = _arguments(node, checking)
    note_destructive(checking.state, node.function, node.span)
    return program.Snapshot(checking.convert(values[0], STRING))


def _set_option(node: tree.Call, checking: Checking) -> Action:
    values = _arguments(node, checking)
    note_recording(checking.state, node.span)
    return program.SetOption(tuple(checking.convert(value, STRING) for value in values))


def _truncate(node: tree.Call, checking: Checking) -> Action:
    _arguments(node, checking)
    note_recording(checking.state, node.span)
    return program.Truncate()


_CHECKS: Final[dict[str, Callable[[tree.Call, Checking], Action]]] = {
    "breakpoint": _destructive,
    "chill": _destructive,
    "clear": _change,
    "commit": _commit,
    "denormalize": _change,
    "discard": _discard,
    "exit": _exit,
    "freopen": _printf,
    "ftruncate": _truncate,
    "normalize": _change,
    "override": _override,
    "panic": _destructive,
    "print": _print,
    "printa": _printa,
    "printf": _printf,
    "printm": _print_memory,
    "raise": _destructive,
    "setopt": _set_option,
    "skip": _destructive,
    "snapshot": _snapshot,
    "speculate": _speculate,
    "stop": _destructive,
    "system": _printf,
    "trace": _trace,
    "tracemem": _trace_memory,
    "trunc": _change,
}
