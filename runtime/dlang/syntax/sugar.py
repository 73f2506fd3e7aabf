"""A tree with `if` -> a tree without, as libdtrace's dt_sugar.c makes it before it compiles.

DIF has no branch around actions: only predicates decide what runs. So a clause with an `if` becomes several clauses,
which run one after another at each firing: one for every condition, which keeps its value in `this->%condition_N`, and
one for every sequence of statements, whose predicate is that the conditions lead there. A fault aborts only one of
these clauses; since it would have aborted the whole clause that the user wrote, the others also test `self->%error`. No
program can name these variables: a name has no `%`.

    self->%error = 0                          descriptions { }
    this->%condition_1 = 1 && predicate       descriptions / !self->%error / { }
    this->%condition_2 = this->%condition_1 && condition
    statements                                descriptions / !self->%error && this->%condition_2 / { }
"""

from typing import Final

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import Span

_ERROR: Final = "%error"
_ERROR_PROBE: Final = "dtrace:::ERROR"


def _integer(span: Span, value: int) -> tree.IntegerLiteral:
    return tree.IntegerLiteral(span, value, "int", str(value))


def _set(span: Span, target: tree.ScopedName, value: tree.Expression) -> tuple[tree.Statement, ...]:
    return (tree.ExpressionStatement(span, tree.Assignment(span, "=", target, value)),)


def _error(span: Span) -> tree.ScopedName:
    return tree.ScopedName(span, "self", _ERROR)


def _no_error(span: Span) -> tree.Expression:
    return tree.Unary(span, "!", _error(span))


def _condition(span: Span, number: int) -> tree.ScopedName:
    return tree.ScopedName(span, "this", f"%condition_{number}")


class _Sugared:
    """One clause that is being split into several. Condition 0 means none: the statements are the clause's own."""

    def __init__(self, clause: tree.Clause) -> None:
        self._clause = clause
        self._conditions = 0
        self.clauses: list[tree.Clause] = []

    def expand(self) -> list[tree.Clause]:
        """The clauses that replace this one."""
        clause = self._clause
        self._append(None, _set(clause.span, _error(clause.span), _integer(clause.span, 0)))
        under = 0 if clause.predicate is None else self._evaluate(clause.predicate, 0)
        self._statements(clause.statements or (), under)
        return self.clauses

    def _append(self, predicate: tree.Expression | None, statements: tuple[tree.Statement, ...]) -> None:
        clause = self._clause
        self.clauses.append(tree.Clause(clause.span, clause.descriptions, predicate, statements))

    def _evaluate(self, condition: tree.Expression, under: int) -> int:
        """The number of a new condition: `condition` if the condition number `under` holds, else false."""
        self._conditions += 1
        span = condition.span
        outer = _condition(span, under) if under else _integer(span, 1)  # 1 && x is an int, whatever x is
        value = tree.Binary(span, "&&", outer, condition)
        self._append(_no_error(span), _set(span, _condition(span, self._conditions), value))
        return self._conditions

    def _statements(self, statements: tuple[tree.Statement, ...], under: int) -> None:
        """Add clauses for the sequences of statements and for each `if` between them."""
        block: list[tree.Statement] = []
        for statement in statements:
            if isinstance(statement, tree.If):
                self._block(block, under)
                block = []
                self._if(statement, under)
            else:
                block.append(statement)
        self._block(block, under)

    def _block(self, statements: list[tree.Statement], under: int) -> None:
        if not statements:
            return
        span = statements[0].span
        predicate = _no_error(span)
        if under:
            predicate = tree.Binary(span, "&&", predicate, _condition(span, under))
        self._append(predicate, tuple(statements))

    def _if(self, statement: tree.If, under: int) -> None:
        number = self._evaluate(statement.condition, under)
        self._statements(statement.then, number)
        if statement.otherwise:
            span = statement.condition.span
            self._statements(
                statement.otherwise, self._evaluate(tree.Unary(span, "!", _condition(span, number)), under)
            )


def _has_if(clause: tree.Clause) -> bool:
    return any(isinstance(statement, tree.If) for statement in clause.statements or ())


def _error_clause(span: Span) -> tree.Clause:
    """The clause that remembers a fault in any part of any clause. A program has one."""
    descriptions = (tree.ProbeDescription(span, _ERROR_PROBE),)
    return tree.Clause(span, descriptions, None, _set(span, _error(span), _integer(span, 1)))


def expand(unit: tree.Unit, *, adds_error_clause: bool = True) -> tree.Unit:
    """The unit without `if`. Clauses that have none stay as they are.

    `adds_error_clause` is False for the later programs of a session: one clause at dtrace:::ERROR serves them all.
    """
    items: list[tree.TopLevel] = []
    for item in unit.items:
        if not isinstance(item, tree.Clause) or not _has_if(item):
            items.append(item)
            continue
        if adds_error_clause:
            items.append(_error_clause(item.span))
            adds_error_clause = False
        items.extend(_Sugared(item).expand())
    return tree.Unit(tuple(items))
