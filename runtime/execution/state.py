"""What the clauses of a session share while they run: variables, buffers, aggregations, speculations, scratch."""

from collections.abc import Callable
from typing import Protocol

from kinst.runtime.dlang.program import Aggregation
from kinst.runtime.execution.environment import Environment, Record, Value
from kinst.runtime.execution.scratch import Scratch
from kinst.runtime.execution.subroutines import Context, table
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

    def create(self, cpu: int) -> int:
        """speculation()."""
        ...

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
    """See the module. `is_tracing` is False after exit(): clauses return at once. Who fires END sets it again.

    `begin` is to be called before the clauses of each firing, if `remembers_firings`: a clause that was compiled uses
    strtok(), which continues from clause to clause but not from firing to firing.
    """

    def __init__(
        self,
        environment: Environment,
        buffers: Buffers,
        speculations: Speculations,
        aggregations: Aggregations,
        scratch: Scratch,
    ) -> None:
        """`scratch` is the one that `environment.memory` reads too."""
        self.buffers, self.speculations, self.aggregations, self.scratch = buffers, speculations, aggregations, scratch
        self.variables = Variables(environment.option("strsize"), environment.option("dynvarsize"), scratch)
        context = Context()
        self.subroutines = table(environment, scratch, environment.option("strsize"), context)
        self.begin = context.begin
        self.remembers_firings = False
        self.is_tracing = True
