"""Types and declarators -> D text."""

import re
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final

from kinst.runtime.dlang.syntax import tree

_MODULE: Final = re.compile(r"(?:[A-Za-z_][0-9A-Za-z_.]*)?")  # modules that the lexer reads without quotes

Constant = Callable[[tree.Expression], str]  # writes the size of an array or bit-field, or an enumerator's value


def specifiers(node: tree.Specifiers, constant: Constant) -> str:
    """The text before a declarator: storage classes, qualifiers and the type."""
    return " ".join((*node.storage, *node.qualifiers, *_type(node.type, constant)))


def _type(
    node: tree.NamedType | tree.BasicType | tree.AggregateType | tree.EnumSpecifier | None, constant: Constant
) -> tuple[str, ...]:
    match node:
        case tree.BasicType(words=words):
            return words
        case tree.NamedType(module=module, name=name):
            return (_in_module(module, name),)
        case tree.AggregateType(keyword=keyword, module=module, tag=tag, members=members):
            body = None if members is None else "".join(f" {line}" for line in _members(members, constant))
            return _elaborated(keyword, _in_module(module, tag), body)
        case tree.EnumSpecifier(module=module, tag=tag, enumerators=enumerators):
            body = None if enumerators is None else " " + ", ".join(_enumerators(enumerators, constant))
            return _elaborated("enum", _in_module(module, tag), body)
        case None:
            return ()


def _in_module(module: str, name: str) -> str:
    return f"{quoted_module(module)}`{name}" if module else name


def quoted_module(module: str) -> str:
    """A module as it is written before a backquote: in quotes unless it is a word in D."""
    return module if _MODULE.fullmatch(module) else f'"{module}"'


def _elaborated(keyword: str, tag: str, body: str | None) -> tuple[str, ...]:
    words = (keyword, tag) if tag else (keyword,)
    return words if body is None else (*words, f"{{{body} }}")


def _enumerators(values: Iterable[tuple[object, str, tree.Expression | None]], constant: Constant) -> list[str]:
    return [name if value is None else f"{name} = {constant(value)}" for _, name, value in values]


def _members(members: tuple[tree.MemberDeclaration, ...], constant: Constant) -> list[str]:
    """The members of a struct. Those of one declaration share its specifiers, which may define a struct: they stay
    together."""
    lines = []
    for _, group in groupby(members, key=lambda member: id(member.specifiers)):
        together = list(group)
        names = ", ".join(filter(None, (_member(member, constant) for member in together)))
        lines.append(_joined(specifiers(together[0].specifiers, constant), names) + ";")
    return lines


def _member(member: tree.MemberDeclaration, constant: Constant) -> str:
    text = declarator(member.declarator, constant)
    return text if member.bits is None else f"{text}: {constant(member.bits)}".lstrip()


def _joined(before: str, after: str) -> str:
    return f"{before} {after}" if after else before


def declarator(node: tree.Declarator, constant: Constant, name: str | None = None) -> str:
    """A declarator, from its name outwards. `name` takes the place of its own name."""
    text = node.name if name is None else name
    follows_pointer = False
    for part in node.parts:
        if isinstance(part, tree.PointerPart):
            text = "*" + "".join(f"{word} " for word in part.qualifiers) + text
            follows_pointer = True
            continue
        text = (f"({text})" if follows_pointer else text) + _suffix(part, constant)
        follows_pointer = False
    return text


def _suffix(part: tree.ArrayPart | tree.KeysPart | tree.FunctionPart, constant: Constant) -> str:
    match part:
        case tree.ArrayPart(size=size):
            return "[]" if size is None else f"[{constant(size)}]"
        case tree.KeysPart(types=types):
            return f"[{', '.join(type_name(kind, constant) for kind in types)}]"
        case tree.FunctionPart(parameters=given, is_variadic=is_variadic):
            dots = ["..."] if is_variadic else []
            return f"({', '.join([parameter(one, constant) for one in given or ()] + dots)})"


def type_name(node: tree.TypeName, constant: Constant, name: str = "") -> str:
    """A type; with `name` a parameter of that name."""
    return _joined(specifiers(node.specifiers, constant), declarator(node.declarator, constant, name))


def parameter(node: tree.Parameter, constant: Constant) -> str:
    """A parameter of a function, an inline or a probe."""
    return type_name(node.type, constant, node.name)


def parameters(nodes: Iterable[tree.Parameter], constant: Constant) -> str:
    """Several parameters, with commas."""
    return ", ".join(parameter(node, constant) for node in nodes)


def declaration(node: tree.Declaration, constant: Constant) -> str:
    """A declaration of variables, of typedefs or of a type alone."""
    names = ", ".join(declarator(one, constant) for one in node.declarators)
    return _joined(specifiers(node.specifiers, constant), names) + ";"


def inline_head(node: tree.Inline, constant: Constant) -> str:
    """An inline up to its `=`."""
    name = node.declarator.name
    if node.parameters is not None:
        name += f"[{parameters(node.parameters, constant)}]"
    return _joined(f"inline {specifiers(node.specifiers, constant)}", declarator(node.declarator, constant, name))
