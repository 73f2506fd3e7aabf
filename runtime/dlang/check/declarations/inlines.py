"""Inlines: names for expressions, with or without parameters, that are expanded where they are used."""

from dataclasses import replace

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.compatibility import is_accepted
from kinst.runtime.dlang.check.converting import cast, converted
from kinst.runtime.dlang.check.declarations.variables import check_keys, key_type
from kinst.runtime.dlang.check.declared import Inline
from kinst.runtime.dlang.check.operands import Operand, constant_operand, is_free
from kinst.runtime.dlang.check.reader import Reader
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.conversions import are_compatible, is_integer, is_void, wrap
from kinst.runtime.dlang.types.declare import INLINE
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import DType, bare
from kinst.runtime.dlang.versions import is_own
from kinst.targets.c_types import Pointer


def define(reader: Reader, node: tree.Inline, kind: DType) -> None:
    """Check a definition. Its expression is checked at once, so that it cannot name itself. `kind` is the declared
    type."""
    name = node.declarator.name
    inlines = reader.inlines
    known = name in inlines.defined or inlines.constant(name) is not None or reader.variables.is_known_global(name)
    if known or is_own(name, reader.context.options):
        raise DError("D_DECL_IDRED", f"identifier redefined: {name}", node.span)
    if is_void(kind):
        raise DError("D_DECL_VOIDOBJ", f"cannot declare void inline: {name}", node.span)
    keys = _keys(reader, node)
    names = tuple(parameter.name for parameter in node.parameters or ()) if keys else ()
    bound = {
        parameter: Operand(key, program.Bound(key, 0), is_lvalue=True)
        for parameter, key in zip(names, keys or (), strict=True)
        if parameter
    }
    before = reader.weight
    with inlines.parameters(bound):
        operand = reader.operand(node.value)
    _check(node, kind, operand)
    inlines.defined[name] = Inline(name, kind, operand, keys, names, node.value, reader.weight - before)


def _keys(reader: Reader, node: tree.Inline) -> tuple[DType, ...] | None:
    if node.parameters is None:
        return None
    kinds = reader.scope.parameters(node.parameters, INLINE, reader.type_constant)
    return tuple(key_type(kind, number, node.span) for number, kind in enumerate(kinds, 1))


def _check(node: tree.Inline, kind: DType, operand: Operand) -> None:
    """Refuse a value that does not fit the declared type. A translation has to be of exactly that type."""
    if operand.translation is not None:
        plain = bare(kind)
        target = bare(plain.target) if isinstance(plain, Pointer) else plain
        fits, shown = are_compatible(target, operand.translation.translator.aggregate), "translation"
    else:
        fits, shown = is_accepted(kind, operand), describe(operand.type)
    if not fits:
        text = f'inline {node.declarator.name} definition uses incompatible types: "{describe(kind)}" = "{shown}"'
        raise DError("D_OP_INCOMPAT", text, node.span)


# -- uses -------------------------------------------------------------------------------------------------------------


def value_of(reader: Reader, inline: Inline) -> Operand:
    """The value of an inline without parameters. It can be assigned to if its expression can."""
    reader.grow(inline.weight)
    # libdtrace inserts a constant as written, with its own type and not the declared one: `inline char c = 300` is 300.
    return replace(inline.operand) if inline.operand.constant is not None else _typed(inline, inline.operand)


def _typed(inline: Inline, operand: Operand) -> Operand:
    if operand.translation is not None:
        return replace(operand)
    if operand.constant is not None and is_integer(inline.type):
        return constant_operand(inline.type, wrap(operand.constant, inline.type))
    if are_compatible(inline.type, operand.type):
        return replace(operand, is_lvalue=True, is_variable=True)
    value = cast(operand.value, inline.type)
    return Operand(inline.type, value, is_lvalue=True, is_variable=True)


def expanded(reader: Reader, inline: Inline, node: tree.Index) -> Operand:
    """`name[arguments]`: the expression with the arguments in place, each of which is evaluated once."""
    operands = [reader.operand(index) for index in node.indexes]
    keys = inline.keys or ()
    check_keys(f"{inline.name}[ ]", keys, operands, node.span)
    reader.grow(inline.weight)
    arguments = [_argument(reader, operand, key) for operand, key in zip(operands, keys, strict=True)]
    bound: dict[str, Operand] = {}
    for name, argument in zip(inline.names, arguments, strict=True):
        bound.setdefault(name, argument)
    with reader.inlines.parameters(bound):
        body = _typed(inline, reader.operand(inline.body))
    for argument, operand in reversed(list(zip(arguments, operands, strict=True))):
        if isinstance(argument.value, program.Bound) and argument.value is not operand.value:
            body = _bind(body, argument.value.number, converted(operand.value, argument.type))
    return body


def _argument(reader: Reader, operand: Operand, key: DType) -> Operand:
    """The operand for a parameter: an argument that costs nothing is inserted as it is; any other is evaluated once."""
    value = converted(operand.value, key)
    # A parameter is a variable: not even 0 is a constant here. Dividing by it is a fault and not D_DIV_ZERO.
    if isinstance(value, program.Integer) or (is_free(value) and value is operand.value):
        return Operand(key, value, is_lvalue=True, is_variable=True)
    return Operand(key, program.Bound(key, reader.fresh()), is_lvalue=True, is_variable=True)


def _bind(body: Operand, number: int, value: program.Expression) -> Operand:
    if body.translation is not None:
        source = program.Bind(body.translation.value.type, number, value, body.translation.value)
        return replace(body, translation=replace(body.translation, value=source))
    if body.constant is not None:
        return body
    return Operand(body.type, program.Bind(body.type, number, value, body.value), is_lvalue=True, is_variable=True)
