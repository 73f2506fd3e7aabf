"""What the parts of the checker share while a program is checked; `kinst.runtime.dlang.check.expressions` implements
it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from kinst.runtime.dlang.check.action_order import ClauseState
from kinst.runtime.dlang.context import CheckContext, MatchedProbes
from kinst.runtime.dlang.program import Aggregation, Expression
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import Span
from kinst.runtime.dlang.types.types import DType


@dataclass(slots=True)
class ProgramState:
    """What all programs of a session share."""

    aggregations: dict[str, Aggregation] = field(default_factory=dict)
    awaited: dict[str, tuple[str, Span]] = field(default_factory=dict)  # name: kind of the pragma that mentions it
    attributes: dict[str, str] = field(default_factory=dict)  # of the program's own names, as pragmas give them
    providers: dict[str, dict[str, tuple[DType, ...]]] = field(default_factory=dict)  # declared: arguments by probe
    libraries: set[str] = field(default_factory=set)  # those that were loaded, by file name
    is_library: bool = False  # whether a library is being checked

    @contextmanager
    def in_library(self) -> Iterator[None]:
        """A library is checked in this context."""
        self.is_library = True
        try:
            yield
        finally:
            self.is_library = False


class Checking(Protocol):
    """The checker at work on one clause (or one inline, declaration, ...)."""

    @property
    def context(self) -> CheckContext:
        """What the session provides: providers, options, the image's symbols and types."""
        ...

    @property
    def state(self) -> ClauseState:
        """What the statements of this clause have done so far."""
        ...

    @property
    def program(self) -> ProgramState:
        """What all programs of the session have declared so far."""
        ...

    @property
    def matched(self) -> MatchedProbes | None:
        """The probes of this clause; None outside clauses."""
        ...

    def expression(self, node: tree.Expression) -> Expression:
        """A checked value: any type but an action's or an aggregation's. Raises DError with the node's span."""
        ...

    def constant(self, node: tree.Expression) -> int | None:
        """The value of a constant integer expression (with sizeof, enumerators and inlines); None if it is not
        constant."""
        ...

    def convert(self, value: Expression, to: DType) -> Expression:
        """`value` as an argument or assigned value of type `to`, which must be compatible: a Convert or StringOf is
        added."""
        ...

    def type(self, node: tree.TypeName) -> DType:
        """The type that a type name stands for. Raises DError if there is none."""
        ...

    def reaches(self, node: tree.Name) -> bool:
        """Whether a bare word is known as a variable, inline or enumerator (for D_FUNC_IDKIND and the like)."""
        ...
