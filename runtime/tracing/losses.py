"""What a run counts as lost -> the drops to report, in dtrace's order."""

from collections import Counter
from collections.abc import Callable, Mapping

from kinst.runtime.clauses.aggregations import AggregationStore
from kinst.runtime.clauses.buffers import Buffers
from kinst.runtime.clauses.speculations import Speculations
from kinst.runtime.clauses.variables import Variables
from kinst.runtime.consumer.messages import Drop, DropKind
from kinst.runtime.consumer.totals import Totals


class Losses:
    """The drops of one run."""

    def __init__(
        self,
        buffers: Buffers,
        store: AggregationStore,
        totals: Totals,
        speculations: Speculations,
        variables: Variables,
        take_drops: Callable[[], Mapping[int, int]],
    ) -> None:
        """`take_drops` gives the records by CPU that were lost elsewhere since the last time."""
        self._buffers, self._store, self._totals = buffers, store, totals
        self._speculations, self._variables, self._take_drops = speculations, variables, take_drops
        self._reported: dict[DropKind, int] = dict.fromkeys(DropKind, 0)

    def take(self, double_errors: int) -> list[Drop]:
        """What was lost since the last report; `double_errors` counts all faults of ERROR's own clauses."""
        # Records and keys are counted by CPU and reset when they are read; the others are totals of the run, as in
        # dtrace_status_t, of which libdtrace reports the differences (dt_handle_status).
        records = Counter(self._buffers.take_drops()) + Counter(self._take_drops())
        lost = [Drop(DropKind.PRINCIPAL, count, cpu) for cpu, count in sorted(records.items())]
        aggregations = Counter(self._store.take_drops()) + Counter(self._totals.take_drops())
        lost += [Drop(DropKind.AGGREGATION, count, cpu) for cpu, count in sorted(aggregations.items())]
        reported, now = self._reported, self._counts(double_errors)
        lost += [Drop(kind, count - reported[kind]) for kind, count in now.items() if count > reported[kind]]
        reported.update(now)
        return lost

    def _counts(self, double_errors: int) -> dict[DropKind, int]:
        """The totals since the start of the run."""
        speculations = self._speculations
        return {
            DropKind.DYNAMIC: sum(self._variables.drops.values()),
            DropKind.SPECULATION: speculations.drops,
            DropKind.SPECULATION_BUSY: speculations.busy,
            DropKind.SPECULATION_UNAVAILABLE: speculations.unavailable,
            DropKind.DOUBLE_ERROR: double_errors,
        }
