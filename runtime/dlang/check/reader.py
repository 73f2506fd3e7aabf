"""What the parts of the checker need from the object that checks a clause."""

from collections.abc import Collection, Mapping
from typing import Protocol

from kinst.runtime.dlang.check.action_order import ClauseState
from kinst.runtime.dlang.check.declared import Inlines, Translators, Variables
from kinst.runtime.dlang.check.operands import Operand, Use
from kinst.runtime.dlang.context import CheckContext, MatchedProbes
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.types import DType


class Reader(Protocol):
    """The checker at work, as its parts see it. `expressions.Expressions` implements it."""

    @property
    def context(self) -> CheckContext:
        """What the session provides."""
        ...

    @property
    def state(self) -> ClauseState:
        """What the statements of this clause have done so far."""
        ...

    @property
    def scope(self) -> TypeScope:
        """The types of the session."""
        ...

    @property
    def variables(self) -> Variables:
        """The variables of the session, new ones included."""
        ...

    @property
    def inlines(self) -> Inlines:
        """The inlines of the session, and the parameters of those that are being checked."""
        ...

    @property
    def translators(self) -> Translators:
        """The translators of the session."""
        ...

    @property
    def matched(self) -> MatchedProbes | None:
        """The probes of this clause; None outside clauses."""
        ...

    @property
    def aggregations(self) -> Collection[str]:
        """Names of the aggregations that exist so far."""
        ...

    @property
    def attributes(self) -> Mapping[str, str]:
        """Stability/stability/class of the program's own names, where pragmas give them."""
        ...

    def operand(self, node: tree.Expression, use: Use = Use.READ) -> Operand:
        """Check an expression. `use` says whether it may name a new variable. Raises DError with the node's span."""
        ...

    def type(self, node: tree.TypeName) -> DType:
        """The type that a type name stands for. Raises DError if there is none."""
        ...

    def type_constant(self, node: tree.Expression) -> int | None:
        """The value of a constant expression inside a type; None if it is not constant."""
        ...

    def fresh(self) -> int:
        """A number for a `Bind`, unique in the session."""
        ...

    @property
    def weight(self) -> int:
        """How many nodes were checked so far, with those of expanded inlines."""
        ...

    def grow(self, weight: int) -> None:
        """Count `weight` nodes that an expansion adds. Raises DError D_SYNTAX when the clause becomes too long."""
        ...
