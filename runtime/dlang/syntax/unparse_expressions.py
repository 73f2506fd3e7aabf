"""Expressions -> D text, with only the parentheses that they need."""

import re
from typing import Final

from kinst.runtime.dlang.syntax import tree, unparse_types
from kinst.runtime.dlang.syntax.parse_expressions import BINDING
from kinst.runtime.dlang.syntax.unparse_types import quoted_module

# The precedence of each form. An operand of lower precedence than its position requires gets parentheses.
COMMA: Final = 0
ASSIGNMENT: Final = 1
_CONDITIONAL: Final = 2
_OPERATION: Final = 3
_CAST: Final = 20
_UNARY: Final = 21
_POSTFIX: Final = 22

_Leaf = tree.IntegerLiteral | tree.StringLiteral | tree.Name | tree.ScopedName | tree.ExternalName
_Suffixed = tree.AggregationName | tree.Call | tree.Index | tree.MemberAccess | tree.OffsetOf | tree.Translate
_Prefixed = tree.Unary | tree.Cast | tree.SizeOf | tree.StringOf

_SPECIAL: Final = re.compile(rb'["\\\x00-\x1f\x7f-\xff]')
_ESCAPES: Final = {b'"': rb"\"", b"\\": rb"\\", b"\n": rb"\n", b"\t": rb"\t"}


def _escape(match: re.Match[bytes]) -> bytes:
    return _ESCAPES.get(match[0], b"\\%03o" % match[0][0])


def string(value: bytes) -> str:
    """A string with its quotes."""
    return f'"{_SPECIAL.sub(_escape, value).decode("ascii")}"'


def _level(node: tree.Expression) -> int:
    match node:
        case tree.Binary(operator=","):
            return COMMA
        case tree.Assignment():
            return ASSIGNMENT
        case tree.Conditional():
            return _CONDITIONAL
        case tree.Binary(operator=operator):
            return _OPERATION + BINDING[operator]
        case tree.Cast():
            return _CAST
        case tree.Unary(operator=operator) if operator[0] == "x":
            return _POSTFIX
        case tree.Unary() | tree.SizeOf() | tree.StringOf():
            return _UNARY
        case _:
            return _POSTFIX


def expression(node: tree.Expression, level: int = COMMA) -> str:
    """The text of an expression, in parentheses if its precedence is below `level`."""
    text = _write(node)
    return text if _level(node) >= level else f"({text})"


def constant(node: tree.Expression) -> str:
    """The text of an expression in a position where C's grammar has a constant expression."""
    return expression(node, _CONDITIONAL)


def arguments(nodes: tuple[tree.Expression, ...]) -> str:
    """The text of several expressions, with commas."""
    return ", ".join(expression(node, ASSIGNMENT) for node in nodes)


def _write(node: tree.Expression) -> str:
    match node:
        case tree.Binary() | tree.Conditional() | tree.Assignment():
            return _operation(node)
        case tree.Unary() | tree.Cast() | tree.SizeOf() | tree.StringOf():
            return _prefixed(node)
        case tree.IntegerLiteral() | tree.StringLiteral() | tree.Name() | tree.ScopedName() | tree.ExternalName():
            return _leaf(node)
        case _:
            return _suffixed(node)


def _leaf(node: _Leaf) -> str:
    match node:
        case tree.IntegerLiteral(text=text):
            return text
        case tree.StringLiteral(value=value):
            return string(value)
        case tree.Name(name=name):
            return name
        case tree.ScopedName(scope=scope, name=name):
            return f"{scope}->{name}"
        case tree.ExternalName(module=module, name=name):
            return f"{quoted_module(module)}`{name}"


def _operation(node: tree.Binary | tree.Conditional | tree.Assignment) -> str:
    match node:
        case tree.Binary(operator=",", left=left, right=right):
            return f"{expression(left)}, {expression(right, ASSIGNMENT)}"
        case tree.Binary(operator=operator, left=left, right=right):
            level = _OPERATION + BINDING[operator]
            return f"{expression(left, level)} {operator} {expression(right, level + 1)}"
        case tree.Conditional(condition=condition, then=then, otherwise=otherwise):
            return f"{expression(condition, _OPERATION)} ? {expression(then)} : {expression(otherwise, _CONDITIONAL)}"
        case tree.Assignment(operator=operator, target=target, value=value):
            return f"{expression(target, _UNARY)} {operator} {expression(value, ASSIGNMENT)}"


def _prefixed(node: _Prefixed) -> str:
    match node:
        case tree.Cast(type=kind, operand=operand):
            return f"({unparse_types.type_name(kind, constant)}){expression(operand, _CAST)}"
        case tree.SizeOf(operand=operand):
            if isinstance(operand, tree.TypeName):
                return f"sizeof ({unparse_types.type_name(operand, constant)})"
            return f"sizeof {expression(operand, _UNARY)}"
        case tree.StringOf(operand=operand):
            return f"stringof({expression(operand)})"
        case tree.Unary(operator=operator, operand=operand):
            return _unary(operator, operand)


def _unary(operator: str, operand: tree.Expression) -> str:
    if operator[0] == "x":
        return f"{expression(operand, _POSTFIX)}{operator[1:]}"
    sign = operator.removesuffix("x")
    text = expression(operand, _UNARY if len(sign) > 1 else _CAST)
    return f"{sign} {text}" if text[0] == sign[0] else f"{sign}{text}"  # - -1 is no --1


def _suffixed(node: _Suffixed) -> str:
    match node:
        case tree.AggregationName(name=name, keys=keys):
            return f"@{'' if name == '_' else name}" + ("" if keys is None else f"[{arguments(keys)}]")
        case tree.Call(function=function, arguments=given):
            return f"{function}({arguments(given)})"
        case tree.Index(base=base, indexes=indexes):
            return f"{_base(base)}[{arguments(indexes)}]"
        case tree.MemberAccess(base=base, name=name, through_pointer=through_pointer):
            return f"{_base(base)}{'->' if through_pointer else '.'}{name}"
        case tree.OffsetOf(type=kind, member=member):
            return f"offsetof({unparse_types.type_name(kind, constant)}, {member})"
        case tree.Translate(type=kind, operand=operand):
            return f"xlate <{unparse_types.type_name(kind, constant)}>({expression(operand)})"


def _base(node: tree.Expression) -> str:
    """The text before a member or an index, in parentheses where needed: `1.x` would be a number, `@a[x]` has keys."""
    text = expression(node, _POSTFIX)
    is_ambiguous = isinstance(node, tree.IntegerLiteral) or (
        isinstance(node, tree.AggregationName) and node.keys is None
    )
    return f"({text})" if is_ambiguous else text
