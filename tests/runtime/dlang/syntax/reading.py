"""Reading programs in tests: without an image, with the types that a test names."""

import dataclasses
from collections.abc import Collection, Sequence

import pytest

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.parser import parse

TYPES = frozenset(("string", "size_t", "uint64_t", "vnode_t", "proc_t", "psinfo_t", "kernel`foo_t"))
NOWHERE = Span("", 0, 0, 0, "")


def read(
    text: str,
    *,
    types: Collection[str] = TYPES,
    arguments: Sequence[str] = (),
    is_description: bool = False,
    allows_empty: bool = False,
) -> tree.Unit:
    return parse(
        text,
        names=Names(types.__contains__),
        macros=Macros(arguments),
        is_description=is_description,
        allows_empty=lambda: allows_empty,
    )


def error_of(text: str) -> DError:
    with pytest.raises(DError) as caught:
        read(text)
    return caught.value


def bare(node: object) -> object:
    """A tree as nested tuples without places: two programs with equal ones are the same program."""
    if isinstance(node, Span):
        return None
    if isinstance(node, tuple):
        return tuple(bare(one) for one in node)
    if dataclasses.is_dataclass(node):
        return (type(node).__name__, *(bare(getattr(node, field.name)) for field in dataclasses.fields(node)))
    return node


def clause(text: str, *, is_description: bool = False) -> tree.Clause:
    (item,) = (item for item in read(text, is_description=is_description).items if isinstance(item, tree.Clause))
    return item


def expression(text: str, *, arguments: Sequence[str] = ()) -> tree.Expression:
    """The only statement of a clause."""
    (item,) = read(f"BEGIN {{ {text}; }}", arguments=arguments).items
    assert isinstance(item, tree.Clause)
    assert item.statements is not None
    (statement,) = item.statements
    assert isinstance(statement, tree.ExpressionStatement)
    return statement.expression
