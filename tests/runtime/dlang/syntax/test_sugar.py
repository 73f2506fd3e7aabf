"""A program with `if` does, without it, what it did. A reader of trees as small as possible runs both."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.sugar import expand
from kinst.runtime.dlang.syntax.unparse import unparse
from tests.runtime.dlang.syntax.reading import bare, read


class Fault(Exception):
    """The name `fault` was evaluated."""


class Reader:
    """Runs clauses in order as one firing does: names are logged, `self->` and `this->` are variables, and `fault`
    ends a clause, after which ERROR's clause runs."""

    def __init__(self, true: frozenset[str]) -> None:
        self.true = true
        self.log: list[str] = []
        self.variables: dict[tuple[str, str], int] = {}

    def value(self, node: tree.Expression) -> int:
        match node:
            case tree.Name(name="fault"):
                raise Fault
            case tree.Name(name=name):
                self.log.append(name)
                return name in self.true
            case tree.IntegerLiteral(value=value):
                return value
            case tree.ScopedName(scope=scope, name=name):
                return self.variables[scope, name]
            case tree.Unary(operator="!", operand=operand):
                return not self.value(operand)
            case tree.Binary(operator="&&", left=left, right=right):
                return bool(self.value(left) and self.value(right))
            case tree.Assignment(target=tree.ScopedName(scope=scope, name=name), value=value):
                self.variables[scope, name] = self.value(value)
                return self.variables[scope, name]
        raise AssertionError(node)

    def statements(self, statements: tuple[tree.Statement, ...]) -> None:
        for statement in statements:
            if isinstance(statement, tree.ExpressionStatement):
                self.value(statement.expression)
            elif self.value(statement.condition):
                self.statements(statement.then)
            else:
                self.statements(statement.otherwise)

    def fire(self, unit: tree.Unit, probe: str) -> None:
        self.variables.setdefault(("self", "%error"), 0)
        for item in unit.items:
            assert isinstance(item, tree.Clause)
            if item.descriptions[0].text != probe:
                continue
            try:
                if item.predicate is None or self.value(item.predicate):
                    self.statements(item.statements or ())
            except Fault:
                self.log.append("FAULT")
                self.fire(unit, "dtrace:::ERROR")


def ran(unit: tree.Unit, true: frozenset[str]) -> list[str]:
    reader = Reader(true)
    reader.fire(unit, "BEGIN")
    reader.fire(unit, "BEGIN")
    return reader.log


_STATEMENTS: st.SearchStrategy[str] = st.deferred(
    lambda: st.lists(
        st.one_of(
            st.sampled_from(["a;", "b;", "c;", "fault;", ";"]),
            st.builds("if ({0}) {{ {1} }}".format, st.sampled_from("pqr"), _STATEMENTS),
            st.builds("if ({0}) {{ {1} }} else {{ {2} }}".format, st.sampled_from("pqr"), _STATEMENTS, _STATEMENTS),
            st.builds("if ({0}) d; else if ({1}) e; else f;".format, st.sampled_from("pqr"), st.sampled_from("pqr")),
        ),
        max_size=3,
    ).map(" ".join)
)


@settings(max_examples=60, deadline=None)
@given(
    body=_STATEMENTS,
    predicate=st.sampled_from(["", "/p/", "/s/", "/fault/"]),
    true=st.frozensets(st.sampled_from("pqrs")),
)
def test_the_same_happens_in_the_same_order(body: str, predicate: str, true: frozenset[str]) -> None:
    """Also where a fault ends all that follows: the second of two firings starts anew."""
    unit = read(f"BEGIN {predicate} {{ {body} }}")
    assert ran(expand(unit), true) == ran(unit, true)


def test_no_if_is_left_and_the_result_is_a_program() -> None:
    sugared = expand(read("BEGIN { if (a) { if (b) c; } else d; } END { if (e) f; }"))
    text = unparse(sugared)
    assert "if" not in text
    assert bare(read(text)) == bare(sugared)


def test_clauses_without_if_stay_as_they_are() -> None:
    unit = read("int x; BEGIN /a/ { b; } END { }")
    assert expand(unit) == unit


def test_the_clauses_that_dtrace_makes() -> None:
    text = unparse(expand(read("BEGIN /p/ { a; if (x) b; else c; d; }")))
    clauses = [re.sub(r"\s+", " ", one).strip() for one in text.strip().split("\n\n")]
    assert clauses == [
        "dtrace:::ERROR { self->%error = 1; }",
        "BEGIN { self->%error = 0; }",
        "BEGIN /!self->%error/ { this->%condition_1 = 1 && p; }",
        "BEGIN /!self->%error && this->%condition_1/ { a; }",
        "BEGIN /!self->%error/ { this->%condition_2 = this->%condition_1 && x; }",
        "BEGIN /!self->%error && this->%condition_2/ { b; }",
        "BEGIN /!self->%error/ { this->%condition_3 = this->%condition_1 && !this->%condition_2; }",
        "BEGIN /!self->%error && this->%condition_3/ { c; }",
        "BEGIN /!self->%error && this->%condition_1/ { d; }",
    ]


def test_one_error_clause_is_enough() -> None:
    unit = read("BEGIN { if (a) b; } END { if (a) b; }")
    assert unparse(expand(unit)).count("dtrace:::ERROR") == 1
    assert "dtrace:::ERROR" not in unparse(expand(unit, adds_error_clause=False))


@pytest.mark.parametrize("text", ["BEGIN { if (a) ; }", "BEGIN { if (a) { } else { } }"])
def test_nothing_to_do_still_evaluates_the_condition(text: str) -> None:
    unit = read(text)
    assert ran(expand(unit), frozenset()) == ["a", "a"]
