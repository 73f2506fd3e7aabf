"""Checking whole programs in tests: what their actions become, or the tag of what is wrong."""

from collections.abc import Iterator

import pytest

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.checker import Checker
from kinst.runtime.dlang.check.declarations.pragmas import set_option
from kinst.runtime.dlang.context import CheckContext, MatchedProbes
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.parser import parse
from kinst.runtime.dlang.syntax.tree import Pragma
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.c_types import NoImageTypes, Symbol

PROVIDERS = ("dtrace", "profile", "fbt")


class Probes:
    """Every probe of three providers exists."""

    def match(self, description: str) -> MatchedProbes:
        provider, _, rest = description.rpartition(":")[0].partition(":")
        names = (":" in description, provider in PROVIDERS, rest.startswith("kernel:"))
        if description in ("BEGIN", "END", "ERROR") or any(names[1:]):
            return MatchedProbes(description, 1, None)
        raise DError("D_PDESC_ZERO", f"probe description {description} does not match any probes")


class Image(NoImageTypes):
    """One function in a module."""

    def symbols(self) -> Iterator[Symbol]:
        yield Symbol("main", "firmware", 0x1000, 4)


def context() -> CheckContext:
    return CheckContext(arch_by_name("amd64"), Image(), Probes(), Options())


def check(text: str, session: CheckContext | None = None) -> program.Program:
    """A checked program text."""
    session = session or context()
    checker = Checker(session)

    def on_pragma(node: Pragma) -> None:
        set_option(node, session.options)

    return checker.check(parse(text, names=Names(checker.is_type), macros=Macros(()), on_pragma=on_pragma))


def actions(statements: str) -> tuple[program.Action, ...]:
    """The actions of the last clause of a program, or of statements alone."""
    text = statements if "{" in statements else f"BEGIN {{ {statements} }}"
    return check(text).clauses[-1].actions


def action(statement: str) -> program.Action:
    """The last of them."""
    return actions(statement)[-1]


def error_of(statements: str) -> DError:
    text = statements if "{" in statements else f"BEGIN {{ {statements} }}"
    with pytest.raises(DError) as caught:
        check(text)
    return caught.value


def tag_of(statements: str) -> str:
    found = error_of(statements)
    assert found.span is not None, found.message
    return found.tag
