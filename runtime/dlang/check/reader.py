"""What the parts of the checker ask of the one that reads a program."""

from collections.abc import Collection
from typing import Protocol

from kinst.runtime.dlang.check.declared import Inlines, Translators, Variables
from kinst.runtime.dlang.check.operands import Operand, Use
from kinst.runtime.dlang.context import CheckContext, MatchedProbes
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.types import DType


class Reader(Protocol):
    """The checker at work, as its parts see it."""

    @property
    def context(self) -> CheckContext:
        """The session's side."""
        ...

    @property
    def scope(self) -> TypeScope:
        """Types."""
        ...

    @property
    def variables(self) -> Variables:
        """Variables."""
        ...

    @property
    def inlines(self) -> Inlines:
        """Inlines and the parameters of those that are being read."""
        ...

    @property
    def translators(self) -> Translators:
        """Translators."""
        ...

    @property
    def matched(self) -> MatchedProbes | None:
        """The probes of this clause."""
        ...

    @property
    def aggregations(self) -> Collection[str]:
        """Names of the aggregations so far."""
        ...

    def operand(self, node: tree.Expression, use: Use = Use.READ) -> Operand:
        """Check an expression."""
        ...

    def type(self, node: tree.TypeName) -> DType:
        """A type name's type."""
        ...

    def type_constant(self, node: tree.Expression) -> int | None:
        """The value of a constant expression inside a type."""
        ...

    def fresh(self) -> int:
        """A number for `Bind`."""
        ...

    @property
    def weight(self) -> int:
        """How many parts were read so far, those of expansions included."""
        ...

    def grow(self, weight: int) -> None:
        """Count what expansion adds to the clause; refuses what explodes."""
        ...
