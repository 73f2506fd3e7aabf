"""`@name[keys] = function(value)`, and the actions on aggregations: printa, clear, trunc, normalize, denormalize."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kinst.runtime.dlang import formats, program
from kinst.runtime.dlang.check import functions, prototypes, quantizing
from kinst.runtime.dlang.check.action_order import note_aggregating, note_recording
from kinst.runtime.dlang.check.checking import Checking
from kinst.runtime.dlang.check.key_types import widest
from kinst.runtime.dlang.check.signatures import AGGREGATING
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types.conversions import is_argument_compatible, is_string, is_string_like
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import INT, INT64, DType
from kinst.targets.nearest import nearest
from kinst.targets.values import dataclass

# The place of the increment among the arguments, for the functions that take one. What is before it is constant.
_INCREMENT_AT: Final = {
    AggregatingFunction.QUANTIZE: 1,
    AggregatingFunction.LQUANTIZE: 4,
    AggregatingFunction.LLQUANTIZE: 5,
}

# -- @name[keys] = function(...) --------------------------------------------------------------------------------------


def aggregation_of(node: tree.Expression) -> tree.AggregationName | None:
    """The aggregation that a statement begins with; None if there is none. Raises DError: D_AGG_MDIM for @a[1][2]."""
    if not isinstance(node, tree.Index):
        return node if isinstance(node, tree.AggregationName) else None
    base: tree.Expression = node
    while isinstance(base, tree.Index):
        base = base.base
    if isinstance(base, tree.AggregationName):
        raise DError("D_AGG_MDIM", f"@{base.name} is indexed more than once: improper use of dimensions", node.span)
    return None


def null_effect(target: tree.AggregationName, checking: Checking) -> DError:
    """The error for a statement that only names an aggregation. In libdtrace an unknown name without keys is an error
    of its own, D_IDENT_UNDEF."""
    known = checking.program.aggregations
    if target.keys is None and target.name not in known:
        return functions.undefined_aggregation(target, known)
    return DError("D_AGG_NULL", f"expression has null effect: @{target.name}", target.span)


def aggregate(
    target: tree.AggregationName, source: tree.Expression, span: Span, checking: Checking
) -> program.Aggregate:
    """`@target = source`: `source` must call an aggregating function. Raises DError: D_AGG_*, D_LQUANT_*, D_LLQUANT_*,
    D_KEY_TYPE, D_PROTO_*."""
    call, function = _function(target, source, checking)
    keys = tuple(functions.key(key, number, checking) for number, key in enumerate(target.keys or (), 1))
    values = [functions.value(argument, checking) for argument in call.arguments]
    prototypes.check(f"{function.value}( )", AGGREGATING[function.value], values, call.span)
    known = checking.program.aggregations.get(target.name)
    if known is not None:
        keys = _same_keys(known, keys, target.span, checking)
        _check_function(known, function, span)
        known = _with_keys(known, widest(known.keys, [key.type for key in keys]), checking)
    _check_values(function, values, call)
    parameters = _parameters(function, values, call.span)
    if known is None:
        kinds = tuple(key.type for key in keys)
        known = Aggregation(len(checking.program.aggregations) + 1, target.name, function, kinds, parameters)
        checking.program.aggregations[target.name] = known
    quantizing.check_same(known, parameters, call.span)
    note_aggregating(checking.state, span)
    return _made(known, keys, values, checking)


def _function(
    target: tree.AggregationName, source: tree.Expression, checking: Checking
) -> tuple[tree.Call, AggregatingFunction]:
    if isinstance(source, tree.Call):
        functions.check_is_function(source, checking)
        if source.function in AGGREGATING:
            return source, AggregatingFunction(source.function)
    raise DError("D_AGG_FUNC", f"@{target.name} must be assigned the result of an aggregating function", source.span)


def _same_keys(
    known: Aggregation, keys: tuple[program.Expression, ...], span: Span, checking: Checking
) -> tuple[program.Expression, ...]:
    """The keys, checked against those of the first use, whose types decide: a key that is a string there is one
    here."""
    name = f"@{known.name}[ ]"
    if len(keys) != len(known.keys):
        raise prototypes.wrong_count(name, len(keys), len(known.keys), span)
    for number, (kind, key) in enumerate(zip(known.keys, keys, strict=True), 1):
        if not is_argument_compatible(kind, key.type, is_zero=prototypes.is_zero(key)):
            raise prototypes.wrong_argument(f"{name} key", number, describe(kind), describe(key.type), span)
    return tuple(_as_text(kind, key, checking) for kind, key in zip(known.keys, keys, strict=True))


def _with_keys(known: Aggregation, kinds: tuple[DType, ...], checking: Checking) -> Aggregation:
    """The aggregation with keys of these types, which is stored as the present definition."""
    if kinds != known.keys:
        known = checking.program.aggregations[known.name] = replace(known, keys=kinds)
    return known


def _as_text(kind: DType, key: program.Expression, checking: Checking) -> program.Expression:
    differs = is_string_like(kind) and is_string(kind) != is_string(key.type)
    return checking.convert(key, kind) if differs else key


def _check_function(known: Aggregation, function: AggregatingFunction, span: Span) -> None:
    if known.function is not function:
        text = (
            f"aggregation redefined: @{known.name}\n"
            f"\t current: @{known.name} = {function.value}( )\n\tprevious: @{known.name} = {known.function.value}( )"
        )
        raise DError("D_AGG_REDEF", text, span)


def _check_values(function: AggregatingFunction, values: Sequence[program.Expression], call: tree.Call) -> None:
    """Refuse a value or an increment that is not a scalar."""
    if values and not functions.is_number(values[0].type):
        raise DError("D_AGG_SCALAR", f"{function.value}( ) argument #1 must be of scalar type", call.arguments[0].span)
    at = _INCREMENT_AT.get(function)
    if at is None or len(values) <= at:
        return
    if not functions.is_number(values[at].type):
        text = f"{function.value}( ) increment value (argument #{at + 1}) must be of scalar type"
        raise DError("D_PROTO_ARG", text, call.arguments[at].span)
    if len(values) > at + 1:
        text = f"{function.value}( ) prototype mismatch: {len(values)} args passed, at most {at + 1} expected"
        raise DError("D_PROTO_LEN", text, call.span)


def _parameters(function: AggregatingFunction, values: Sequence[program.Expression], span: Span) -> tuple[int, ...]:
    match function:
        case AggregatingFunction.LQUANTIZE:
            return quantizing.linear(values, span)
        case AggregatingFunction.LLQUANTIZE:
            return quantizing.log_linear(values, span)
        case _:
            return ()


def _made(
    known: Aggregation, keys: tuple[program.Expression, ...], values: Sequence[program.Expression], checking: Checking
) -> program.Aggregate:
    """The action. The kernel aggregates 64-bit numbers, whatever the type of the expression; lquantize() takes 32
    bits."""
    if not values:
        return program.Aggregate(known, keys, None)
    value = checking.convert(values[0], INT64)
    if known.function is AggregatingFunction.LQUANTIZE:
        value = program.Convert(INT, value)
    at = _INCREMENT_AT.get(known.function, len(values))
    increment = checking.convert(values[at], INT64) if at < len(values) else None
    return program.Aggregate(known, keys, value, increment)


# -- actions on aggregations ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Change:
    """How many arguments an action on aggregations takes, and what its error tags begin with."""

    tags: str
    fewest: int
    most: int


_CHANGES: Final = {
    "clear": _Change("D_CLEAR", 1, 1),
    "trunc": _Change("D_TRUNC", 1, 2),
    "normalize": _Change("D_NORMALIZE", 2, 2),
    "denormalize": _Change("D_NORMALIZE", 1, 1),
}


def change(node: tree.Call, checking: Checking) -> program.ChangeAggregation:
    """clear(@), trunc(@[, n]), normalize(@, n), denormalize(@). Raises DError: D_CLEAR_*, D_TRUNC_*, D_NORMALIZE_*."""
    kind = _CHANGES[node.function]
    count = len(node.arguments)
    arguments = [functions.value(argument, checking) for argument in node.arguments]
    if not kind.fewest <= count <= kind.most:
        expected = kind.fewest if count < kind.fewest else kind.most
        raise prototypes.count_error(f"{kind.tags}_PROTO", f"{node.function}( )", count, expected, node.span)
    aggregation = _named(node, 0, arguments[0].type, kind.tags, checking)
    argument = arguments[1] if count > 1 else None
    if argument is not None and not functions.is_number(argument.type):
        text = f"{node.function}( ) argument #2 must be of scalar type"
        raise DError(f"{kind.tags}_SCALAR", text, node.arguments[1].span)
    note_recording(checking.state, node.span)
    changed = None if argument is None else checking.convert(argument, INT64)
    return program.ChangeAggregation(node.function, aggregation, changed)


def _named(node: tree.Call, place: int, kind: DType, tags: str, checking: Checking) -> Aggregation:
    """The aggregation that an argument names. Some statement before must have aggregated into it."""
    argument = node.arguments[place]
    target = aggregation_of(argument)
    if target is None:
        what = f"{node.function}( ) argument"
        raise prototypes.wrong_argument(
            what, place + 1, "aggregation", describe(kind), argument.span, tag=f"{tags}_AGGARG"
        )
    known = checking.program.aggregations.get(target.name)
    if known is None:
        hint = nearest(f"@{target.name}", (f"@{name}" for name in checking.program.aggregations))
        raise DError(f"{tags}_AGGBAD", f"undefined aggregation: @{target.name}{hint}", argument.span)
    return known


def printa(node: tree.Call, checking: Checking) -> program.Printa:
    """printa([format, ]@a, ...). Raises DError: D_PRINTA_*, D_PRINTF_*, D_SYNTAX."""
    values = [functions.value(argument, checking) for argument in node.arguments]
    prototypes.check("printa( )", prototypes.Prototype((None,), is_variadic=True), values, node.span)
    first = node.arguments[0]
    text = first.value if isinstance(first, tree.StringLiteral) else None
    start = 0 if text is None else 1
    if len(values) <= start:
        raise prototypes.count_error("D_PRINTA_PROTO", "printa( )", len(values), start + 1, node.span)
    named: list[Aggregation] = []
    for place in range(start, len(values)):
        named.append(_named(node, place, values[place].type, "D_PRINTA", checking))
        _check_joined(named[0], named[-1], node.arguments[place].span)
        if text is not None and place == start:
            is_count = named[0].function is AggregatingFunction.COUNT
            parsed = formats.parse(text, first.span)
            formats.check_printa(parsed, named[0].keys, is_count=is_count, span=node.span)
    note_recording(checking.state, node.span)
    return program.Printa(text, tuple(named))


def _check_joined(first: Aggregation, other: Aggregation, span: Span) -> None:
    """Refuse aggregations that are to be printed together but have different keys."""
    if len(first.keys) != len(other.keys):
        text = (
            f"printa( ) requires aggregations with the same keys: @{first.name} has {len(first.keys)}, "
            f"@{other.name} has {len(other.keys)}"
        )
        raise DError("D_PRINTA_AGGKEY", text, span)
    for number, (one, two) in enumerate(zip(first.keys, other.keys, strict=True), 1):
        if not is_argument_compatible(one, two):
            text = (
                f"printa( ) key #{number} of @{other.name} is incompatible with that of @{first.name}:\n"
                f"\t@{first.name}: {describe(one)}\n\t@{other.name}: {describe(two)}"
            )
            raise DError("D_PRINTA_AGGPROTO", text, span)
