"""The public names of kinst.runtime -> what there is to say of each: signatures and docstrings, as the source has them.

Signatures are read from the source, where types are written as a reader knows them, and not from the objects, of which
each version of Python shows types in its own way.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc, getmro, getsource, isclass
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import kinst.runtime
from docs.generate.dlang import DESCRIBED
from kinst.runtime.tracing import given

GROUPS: Final[Mapping[str, list[str]]] = DESCRIBED["python"]  # heading -> names
_SECTIONS: Final = ("Args", "Returns", "Raises", "Example")
_SECTION: Final = re.compile(rf"^({'|'.join(_SECTIONS)}):\n", re.MULTILINE)
_ITEM: Final = re.compile(r"^    (\S[^:\n]*): (.*(?:\n     +.*)*)", re.MULTILINE)
_OURS: Final = "kinst."
_WIDTH: Final = 100  # of a signature on one line
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Docs:
    """A docstring, divided: what it says; its arguments and errors, each a name and a text; what is returned; and an
    example as a session of Python."""

    says: str
    arguments: tuple[tuple[str, str], ...] = ()
    returns: str = ""
    errors: tuple[tuple[str, str], ...] = ()
    example: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A method, a property or an attribute. `signature` is empty where it is in another class, `home`."""

    name: str
    signature: str
    docs: Docs
    home: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A public name: a function, or a class with its members. `values` are an enumeration's, or the fields of a value
    that is only given: each with its type, and what it is."""

    name: str
    signature: str
    docs: Docs
    values: tuple[tuple[str, str, str], ...] = ()
    members: tuple[Member, ...] = ()


def groups() -> dict[str, list[Name]]:
    """All of them, by heading. Raises LookupError: the description has not the names that the package has."""
    if wrong := {name for names in GROUPS.values() for name in names} ^ set(kinst.runtime.__all__):
        raise LookupError(f"descriptions.toml [python] and the code differ: {', '.join(sorted(wrong))}")
    seen: dict[type, str] = {}
    return {title: [_described(name, seen) for name in names] for title, names in GROUPS.items()}


def _described(name: str, seen: dict[type, str]) -> Name:
    found: Any = getattr(kinst.runtime, name)
    docs = divided(found.__doc__)
    if not isclass(found):
        return Name(name, _signature(_parsed(found)), docs)
    node, lines = _parsed(found), getsource(found).splitlines()
    assert isinstance(node, ast.ClassDef)
    fields = tuple(_fields(node, lines))
    is_given = bool(docs.arguments)  # users make it: its arguments say what its fields are
    signature = _call(name, ["*", *_parameters(node)])
    return Name(
        name,
        signature if is_given else "",
        docs,
        () if is_given else fields,
        tuple(_members(found, seen)),
    )


def _members(owner: type, seen: dict[type, str]) -> Iterator[Member]:
    """Those of the class and of what it inherits from us. What another public class has shown is only named."""
    names = set[str]()
    for one in getmro(owner):
        if not one.__module__.startswith(_OURS):
            continue
        node = _parsed(one)
        assert isinstance(node, ast.ClassDef)
        home = seen.setdefault(one, owner.__name__)
        for member in (*_attributes(node, getsource(one).splitlines()), *_methods(node)):
            if member.name not in names:
                names.add(member.name)
                yield member if home == owner.__name__ else Member(member.name, "", Docs(""), home)


def _methods(node: ast.ClassDef) -> Iterator[Member]:
    for one in node.body:
        docs = ast.get_docstring(one) if isinstance(one, _Function) else None
        if isinstance(one, _Function) and docs and not one.name.startswith("_"):
            is_property = any(isinstance(mark, ast.Name) and mark.id == "property" for mark in one.decorator_list)
            result = "" if one.returns is None else _type(one.returns)
            yield Member(one.name, f"{one.name}: {result}" if is_property else _signature(one), divided(docs))


def _attributes(node: ast.ClassDef, lines: list[str]) -> Iterator[Member]:
    """What __init__ assigns with a comment that says what it is."""
    for one in node.body:
        if isinstance(one, _Function) and one.name == "__init__":
            for line in ast.walk(one):
                match line:
                    case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]) if name[0] != "_":
                        if comment := _comment(lines[(line.end_lineno or 0) - 1]):
                            yield Member(name, name, Docs(f"{comment[0].upper()}{comment[1:]}."))


def _fields(node: ast.ClassDef, lines: list[str]) -> Iterator[tuple[str, str, str]]:
    """Fields of a value, and members of an enumeration, each with the comment that is behind it."""
    for one in node.body:
        comment = _comment(lines[(one.end_lineno or 0) - 1])
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, _type(annotation), comment
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)) if name[0] != "_":
                yield name, repr(value), comment


def _parameters(node: ast.ClassDef) -> Iterator[str]:
    """Of a dataclass."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            default = "" if one.value is None else f" = {ast.unparse(one.value)}"
            made = default.replace("field(default_factory=dict)", "{}")
            yield f"{one.target.id}: {_type(one.annotation)}{made}"


def _signature(node: ast.stmt) -> str:
    """A function as a reader would call it."""
    assert isinstance(node, _Function)
    parameters = node.args
    values = [*[None] * (len(parameters.args) - len(parameters.defaults)), *parameters.defaults]
    shown = [_parameter(one, value) for one, value in zip(parameters.args, values, strict=True) if one.arg != "self"]
    if parameters.vararg is not None:
        shown.append(f"*{_parameter(parameters.vararg, None)}")
    elif parameters.kwonlyargs:
        shown.append("*")
    shown += map(_parameter, parameters.kwonlyargs, parameters.kw_defaults)
    result = "" if node.returns is None else f" -> {_type(node.returns)}"
    return _call(node.name, shown, result)


def _parameter(parameter: ast.arg, default: ast.expr | None) -> str:
    text = parameter.arg if parameter.annotation is None else f"{parameter.arg}: {_type(parameter.annotation)}"
    return text if default is None else f"{text} = {ast.unparse(default)}"


def _call(name: str, parameters: list[str], result: str = "") -> str:
    line = f"{name}({', '.join(parameters)}){result}"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {one},\n" for one in parameters) + f"){result}"


def _type(annotation: ast.expr) -> str:
    """A type as it is written, without quotes, and with what our own names for types stand for."""
    text = ast.unparse(annotation)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        text = annotation.value
    aliases = _aliases()
    while words := [word for word in re.findall(r"\w+", text) if word in aliases]:
        text = re.sub(rf"\b{words[0]}\b", aliases[words[0]], text)
    return text


@cache
def _aliases() -> Mapping[str, str]:
    """Our own names for types, and what they stand for."""
    body = ast.parse(Path(given.__file__).read_text()).body
    return {
        one.targets[0].id: ast.unparse(one.value)
        for one in body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }


def _parsed(found: Any) -> ast.stmt:
    return ast.parse(dedent(getsource(found))).body[0]


def _comment(line: str) -> str:
    return line.partition("  # ")[2].strip()


def divided(docstring: str | None) -> Docs:
    """A docstring in the form that the project has them in."""
    first, *rest = _SECTION.split(cleandoc(docstring or ""))
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    items = {name: tuple((item, _joined(text)) for item, text in _ITEM.findall(parts.get(name, ""))) for name in parts}
    return Docs(
        first.strip(),
        items.get("Args", ()),
        _joined(parts.get("Returns", "")),
        items.get("Raises", ()),
        dedent(parts.get("Example", "")).strip(),
    )


def _joined(text: str) -> str:
    return " ".join(text.split())
