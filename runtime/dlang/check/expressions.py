"""Expressions of one clause (or inline, declaration, ...): syntax tree -> typed expressions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kinst.runtime.dlang import program as made
from kinst.runtime.dlang.builtins import VARIABLES
from kinst.runtime.dlang.check import functions
from kinst.runtime.dlang.check.action_order import ClauseState
from kinst.runtime.dlang.check.checking import ProgramState
from kinst.runtime.dlang.check.converting import converted
from kinst.runtime.dlang.check.declarations.translators import translate
from kinst.runtime.dlang.check.declarations.variables import scoped
from kinst.runtime.dlang.check.declared import Inlines, Translators, Variables
from kinst.runtime.dlang.check.names import external_name, global_name, index
from kinst.runtime.dlang.check.operands import AGGREGATION, Operand, Use, action_operand, value_operand
from kinst.runtime.dlang.check.operations.assignments import assignment, is_step, step
from kinst.runtime.dlang.check.operations.members import member, offset_of
from kinst.runtime.dlang.check.operations.operators import (
    binary,
    cast_operand,
    conditional,
    size_of_operand,
    string_of,
    unary,
)
from kinst.runtime.dlang.context import CheckContext, MatchedProbes
from kinst.runtime.dlang.program import Scope
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.words import ACTIONS, AGGREGATING, STACKS, SYMBOLS
from kinst.runtime.dlang.types.conversions import is_dynamic, is_integer
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.types import (
    INT,
    LONG,
    LONGLONG,
    STACK,
    STRING,
    SYMBOL,
    UINT,
    ULONG,
    ULONGLONG,
    VOID,
    DType,
    Dynamic,
)
from kinst.runtime.dlang.versions import is_later

HEAVIEST: Final = 200_000  # nodes of a clause with its inlines expanded


@dataclass(slots=True)
class Session:
    """What all programs of a session share."""

    context: CheckContext
    scope: TypeScope
    inlines: Inlines
    variables: Variables = field(default_factory=Variables)
    translators: Translators = field(default_factory=Translators)
    program: ProgramState = field(default_factory=ProgramState)
    numbers: int = 0  # the last number given to a `Bind`


class Expressions:
    """Implements `checking.Checking` and `operands.Reader`."""

    __slots__ = ("_matched", "_session", "_state", "_weight")

    def __init__(self, session: Session, matched: MatchedProbes | None = None) -> None:
        self._session = session
        self._matched = matched
        self._state = ClauseState()
        self._weight = 0

    # -- what the parts share -----------------------------------------------------------------------------------------

    @property
    def context(self) -> CheckContext:
        """What the session provides."""
        return self._session.context

    @property
    def scope(self) -> TypeScope:
        """The types of the session."""
        return self._session.scope

    @property
    def variables(self) -> Variables:
        """The variables of the session, new ones included."""
        return self._session.variables

    @property
    def inlines(self) -> Inlines:
        """The inlines of the session, and the parameters in scope."""
        return self._session.inlines

    @property
    def translators(self) -> Translators:
        """The translators of the session."""
        return self._session.translators

    @property
    def program(self) -> ProgramState:
        """What all programs of the session have declared so far."""
        return self._session.program

    @property
    def state(self) -> ClauseState:
        """What the statements of this clause have done so far."""
        return self._state

    @property
    def matched(self) -> MatchedProbes | None:
        """The probes of this clause; None outside clauses."""
        return self._matched

    @property
    def weight(self) -> int:
        """How many nodes were checked so far, with those of expanded inlines."""
        return self._weight

    def forget_state(self) -> None:
        """Reset the clause's state: its statements are checked a second time."""
        self._state = ClauseState()

    @property
    def aggregations(self) -> Collection[str]:
        """Names of the aggregations that exist so far."""
        return self._session.program.aggregations.keys()

    @property
    def attributes(self) -> Mapping[str, str]:
        """Stability/stability/class of the program's own names, where pragmas give them."""
        return self._session.program.attributes

    def fresh(self) -> int:
        """A number for a `Bind`, unique in the session."""
        self._session.numbers += 1
        return self._session.numbers

    def grow(self, weight: int) -> None:
        """Count `weight` more nodes. Raises DError D_SYNTAX when inlines within inlines grow beyond HEAVIEST."""
        self._weight += weight
        if self._weight > HEAVIEST:
            raise DError("D_SYNTAX", "the clause is too long with its inlines expanded")

    # -- types --------------------------------------------------------------------------------------------------------

    def type(self, node: tree.TypeName) -> DType:
        """The type that a type name stands for."""
        return self.scope.type_of(node, self.type_constant)

    def type_constant(self, node: tree.Expression) -> int | None:
        """The value of a constant expression inside a type."""
        return self.constant(node)

    # -- expressions --------------------------------------------------------------------------------------------------

    def operand(self, node: tree.Expression, use: Use = Use.READ) -> Operand:
        """Check an expression. `use` says whether it may name a new variable. Raises DError with the node's span."""
        self.grow(1)
        naming = _NAMING.get(type(node))
        if naming is not None:
            return naming(self, node, use)
        return _READERS[type(node)](self, node)

    def expression(self, node: tree.Expression) -> made.Expression:
        """A checked value. Raises DError with the node's span."""
        operand = self.operand(node)
        refuse_valueless(node, operand)
        return operand.value

    def value(self, node: tree.Expression) -> Operand:
        """A checked value as an operand."""
        operand = self.operand(node)
        refuse_valueless(node, operand)
        return operand

    def constant(self, node: tree.Expression) -> int | None:
        """The value of a constant integer expression; None if it is not one."""
        operand = self.operand(node)
        return operand.constant if is_integer(operand.type) else None

    def convert(self, value: made.Expression, to: DType) -> made.Expression:
        """`value` as an argument or assigned value of type `to`."""
        return converted(value, to)

    def reaches(self, node: tree.Name) -> bool:
        """Whether a bare word is known as a variable, inline or enumerator."""
        name = node.name
        known = self.inlines
        return (
            (name in VARIABLES and not is_later(name, self.context.options))
            or name in known.defined
            or known.parameter(name) is not None
            or known.constant(name) is not None
            or self.variables.find(Scope.GLOBAL, name) is not None
            or known.enumerator(name) is not None
        )


def refuse_valueless(node: tree.Expression, operand: Operand) -> None:
    """Refuse an expression without a value: a call of an action, and a translation, which has only members."""
    if operand.action:
        text = f"{operand.action}( ) may not be called from a D expression (D program context required)"
        raise DError("D_CG_EXPR", text, node.span)
    if is_dynamic(operand.type):
        raise DError("D_CG_DYN", "expression cannot evaluate to result of dynamic type", node.span)


# -- nodes that need no other part ---------------------------------------------------------------------------------


def _integer(_: Expressions, node: tree.IntegerLiteral) -> Operand:
    kind = LITERALS[node.type_name]
    return Operand(kind, made.Integer(kind, node.value), constant=node.value)


def _string(_: Expressions, node: tree.StringLiteral) -> Operand:
    return Operand(STRING, made.Text(STRING, node.value), size=len(node.value) + 1)


def _aggregation(reader: Expressions, node: tree.AggregationName) -> Operand:
    if node.name not in reader.aggregations:
        raise functions.undefined_aggregation(node, reader.aggregations)
    return Operand(AGGREGATION, made.Builtin(AGGREGATION, f"@{node.name}"), is_lvalue=True, is_variable=True)


def _call(reader: Expressions, node: tree.Call) -> Operand:
    """A call. Actions and aggregating functions cannot be part of an expression; which error that is depends on where
    they stand."""
    name = node.function
    if is_later(name, reader.context.options):
        return value_operand(functions.call(node, reader))  # which refuses it
    if name in AGGREGATING or name in ACTIONS:
        functions.check_valueless(node, reader)
    if name in AGGREGATING:
        return Operand(AGGREGATING_RESULT, made.Builtin(AGGREGATING_RESULT, name))
    if name in ACTIONS:
        return action_operand(name, STACK if name in STACKS else SYMBOL if name in SYMBOLS else VOID)
    return value_operand(functions.call(node, reader))


def _unary(reader: Expressions, node: tree.Unary) -> Operand:
    return step(reader, node) if is_step(node.operator) else unary(reader, node)


AGGREGATING_RESULT: Final = Dynamic("aggregating function")
LITERALS: Final[dict[str, DType]] = {kind.name: kind for kind in (INT, UINT, LONG, ULONG, LONGLONG, ULONGLONG)}
# The function for each kind of node. Each takes its own type of node, which the type of a table cannot express.
_NAMING: Final[dict[type, Callable[[Any, Any, Use], Operand]]] = {
    tree.Name: global_name,
    tree.ScopedName: scoped,
    tree.Index: index,
}
_READERS: Final[dict[type, Callable[[Any, Any], Operand]]] = {
    tree.IntegerLiteral: _integer,
    tree.StringLiteral: _string,
    tree.ExternalName: external_name,
    tree.AggregationName: _aggregation,
    tree.Unary: _unary,
    tree.Binary: binary,
    tree.Conditional: conditional,
    tree.Assignment: assignment,
    tree.Call: _call,
    tree.MemberAccess: member,
    tree.Cast: cast_operand,
    tree.SizeOf: size_of_operand,
    tree.OffsetOf: offset_of,
    tree.StringOf: string_of,
    tree.Translate: translate,
}
