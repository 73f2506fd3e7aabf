"""What the clauses of a session share while they run: variables, buffers, aggregations, speculations, scratch."""

from collections.abc import Callable
from copy import copy
from typing import Final, Protocol

from kinst.runtime.clauses.environment import Environment, Record, Value
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.clauses.subroutines import Context, table
from kinst.runtime.clauses.variables import Variables
from kinst.runtime.dlang.program import Aggregation

_PROBE_FIELDS: Final = ("provider", "module", "function", "name")
_REMEMBERED: Final = 1 << 16
Updater = Callable[[int, tuple[Value, ...], int, int], None]  # CPU, key, value, increment


class Buffers(Protocol):
    """The principal buffers. `kinst.runtime.clauses.buffers.Buffers` implements it."""

    def reserve(self, cpu: int, size: int) -> bool:
        """Whether there is space for a record of `size` bytes. If not, which is counted as a drop, or if tracing has
        stopped, nothing of the clause runs."""
        ...

    def append(self, record: Record) -> None:
        """Add the record for which space was reserved."""
        ...


class Speculations(Protocol):
    """Speculations. `kinst.runtime.clauses.speculations.Speculations` implements it. Impossible numbers raise Fault
    ILLOP."""

    def create(self, cpu: int) -> int:
        """speculation(): a new number; 0 if none is free."""
        ...

    def reserve(self, number: int, cpu: int, size: int) -> bool:
        """speculate(): whether there is space for a record. If not, the rest of the clause is skipped."""
        ...

    def append(self, number: int, record: Record) -> None:
        """Add the record for which space was reserved."""
        ...

    def commit(self, number: int, cpu: int) -> None:
        """commit(): move the speculation's records to the principal buffers."""
        ...

    def discard(self, number: int, cpu: int) -> None:
        """discard(): drop the speculation's records."""
        ...


class Aggregations(Protocol):
    """Aggregations. `kinst.runtime.clauses.aggregations.AggregationStore` implements it."""

    def updater(self, aggregation: Aggregation) -> Updater:
        """A function that adds one value to the aggregation."""
        ...


class State:
    """What the clauses of a session share. After exit(), `is_tracing` is False and clauses return at once, until END
    fires.

    If `remembers_firings`, call `begin` before the clauses of each firing: some clause uses strtok(), which continues
    from clause to clause but not from firing to firing.
    """

    def __init__(
        self,
        environment: Environment,
        buffers: Buffers,
        speculations: Speculations,
        aggregations: Aggregations,
        scratch: Scratch,
    ) -> None:
        """`scratch` is the one that `environment.memory` reads as well."""
        self.buffers, self.speculations, self.aggregations, self.scratch = buffers, speculations, aggregations, scratch
        self.variables = Variables(environment.option("strsize"), environment.option("dynvarsize"), scratch)
        longest = max(environment.option("strsize"), 1)
        self.probe_texts = {field: ProbeTexts(environment, field, longest) for field in _PROBE_FIELDS}
        context = Context()
        self.subroutines = table(environment, scratch, environment.option("strsize"), context)
        self.begin = context.begin
        self.remembers_firings = False
        self.is_tracing = True

    def stop(self) -> None:
        """From now on, clauses return at once."""
        self.is_tracing = False

    def go_on(self) -> None:
        """Let clauses run again, for END."""
        self.is_tracing = True

    def remember_firings(self) -> None:
        """A clause uses strtok(): `begin` must be called before each firing."""
        self.remembers_firings = True

    def with_aggregations(self, aggregations: Aggregations) -> "State":
        """The same state with other aggregations, for hits that are counted. It is never stopped: a clause with exit()
        stops the original before the hits that came earlier are delivered. Which hits count, the tracer decides."""
        other = copy(self)
        other.aggregations, other.is_tracing = aggregations, True
        return other


class ProbeTexts(dict[int, bytes]):
    """One field of the names of probes, by the probe's id, as clauses see it. A cache: there may be millions of
    probes."""

    def __init__(self, environment: Environment, field: str, limit: int) -> None:
        """`field` is an attribute of `Probe`. `limit` is the most bytes of a text."""
        super().__init__()
        self._environment, self._field, self._limit = environment, field, limit

    def __missing__(self, identifier: int) -> bytes:
        if len(self) >= _REMEMBERED:
            self.clear()
        probe = self._environment.probe(identifier)
        text = "" if probe is None else getattr(probe, self._field)
        self[identifier] = found = text.encode("utf-8", "surrogateescape")[: self._limit]
        return found
