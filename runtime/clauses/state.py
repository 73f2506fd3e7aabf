"""What the clauses of a session share while they run: variables, buffers, aggregations, speculations, scratch."""

from collections.abc import Callable
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
    """The principal buffers: `kinst.runtime.clauses.buffers.Buffers`."""

    def reserve(self, cpu: int, size: int) -> bool:
        """Room for a record. False: there is none (counted), or tracing stopped: nothing of the clause runs."""
        ...

    def append(self, record: Record) -> None:
        """The record for which room was reserved."""
        ...


class Speculations(Protocol):
    """`kinst.runtime.clauses.speculations.Speculations`. Numbers that were never given out raise Fault ILLOP."""

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
    """`kinst.runtime.clauses.aggregations.AggregationStore`."""

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
        longest = max(environment.option("strsize"), 1)
        self.probe_texts = {field: ProbeTexts(environment, field, longest) for field in _PROBE_FIELDS}
        context = Context()
        self.subroutines = table(environment, scratch, environment.option("strsize"), context)
        self.begin = context.begin
        self.remembers_firings = False
        self.is_tracing = True


class ProbeTexts(dict[int, bytes]):
    """One field of probes' names, by the probe's id, as clauses see it. It forgets, since probes may be millions."""

    def __init__(self, environment: Environment, field: str, limit: int) -> None:
        """`field` is one of `Probe`; `limit` is in bytes."""
        super().__init__()
        self._environment, self._field, self._limit = environment, field, limit

    def __missing__(self, identifier: int) -> bytes:
        if len(self) >= _REMEMBERED:
            self.clear()
        probe = self._environment.probe(identifier)
        text = "" if probe is None else getattr(probe, self._field)
        self[identifier] = found = text.encode("utf-8", "surrogateescape")[: self._limit]
        return found
