"""What the clauses of a session share while they run: variables, buffers, aggregations, speculations, scratch."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kinst.runtime.dlang.program import Aggregation
from kinst.runtime.execution.environment import Environment, Record, Value
from kinst.runtime.execution.scratch import Scratch
from kinst.runtime.execution.variables import Variables

Updater = Callable[[int, tuple[Value, ...], int, int], None]  # CPU, key, value, increment


class Buffers(Protocol):
    """The principal buffers: `kinst.runtime.execution.buffers.Buffers`."""

    def reserve(self, cpu: int, size: int) -> bool:
        """Room for a record. False: there is none (counted), or tracing stopped: nothing of the clause runs."""
        ...

    def append(self, record: Record) -> None:
        """The record for which room was reserved."""
        ...


class Speculations(Protocol):
    """`kinst.runtime.execution.speculations.Speculations`. Numbers that were never given out raise Fault ILLOP."""

    def reserve(self, number: int, cpu: int, size: int) -> bool:
        """speculate(): room for a record. False: the rest of the clause is skipped."""
        ...

    def append(self, number: int, record: Record) -> None:
        """The record for which room was reserved."""
        ...

    def commit(self, number: int, cpu: int) -> None:
        """commit()."""
        ...

    def discard(self, number: int, cpu: int) -> None:
        """discard()."""
        ...


class Aggregations(Protocol):
    """`kinst.runtime.execution.aggregations.AggregationStore`."""

    def updater(self, aggregation: Aggregation) -> Updater:
        """What adds one value."""
        ...


class State:
    """See the module. `is_tracing` is False after exit(): clauses return at once. Who fires END sets it again."""

    def __init__(
        self,
        environment: Environment,
        buffers: Buffers,
        speculations: Speculations,
        aggregations: Aggregations,
        scratch: Scratch,
        subroutines: Mapping[str, Callable[..., Any]],
    ) -> None:
        """`scratch` is the one that `environment.memory` reads too; `subroutines` are D's functions by name."""
        self.subroutines = subroutines
        self.buffers, self.speculations, self.aggregations, self.scratch = buffers, speculations, aggregations, scratch
        self.variables = Variables(environment.option("strsize"), environment.option("dynvarsize"), scratch)
        self.is_tracing = True
