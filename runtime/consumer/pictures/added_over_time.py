"""What snapshots add to distributions -> their values over time, which no clear() or printa() changes.

Only distributions: how many values were added to which bucket, and when.
"""

from collections.abc import Iterator, Sequence

from kinst.runtime.clauses.aggregations import Contents, Key
from kinst.runtime.clauses.time_bins import TimeBins
from kinst.runtime.consumer.totals import is_distribution
from kinst.runtime.dlang.program import Aggregation

_KEYS = 64  # of an aggregation that get bins of their own; later ones are only in the sum


class AddedOverTime:
    """Values by bucket and time. `bins` are those of one key, or of all keys together."""

    def __init__(self, start: int) -> None:
        """`start` is when the run begins (ns)."""
        self._start = self._looked = start
        self._all: dict[int, TimeBins] = {}  # by number of the aggregation
        self._keys: dict[int, dict[Key, TimeBins]] = {}

    def add(self, now: int, added: Sequence[Contents]) -> None:
        """Add the contents of one snapshot, taken at `now` (ns)."""
        for contents in added:
            if is_distribution(contents.aggregation):
                self._add(now, contents)
        self._looked = now

    def _add(self, now: int, contents: Contents) -> None:
        number = contents.aggregation.number
        whole = self._all.setdefault(number, TimeBins(self._start))
        keys = self._keys.setdefault(number, {})
        for key, buckets in contents.table.items():
            assert isinstance(buckets, dict), "a distribution"
            if key not in keys and len(keys) < _KEYS:
                keys[key] = TimeBins(self._start)
            for bins in (whole, keys[key]) if key in keys else (whole,):
                for bucket, count in buckets.items():
                    bins.spread(bucket, self._looked, now, count)

    def of(self, aggregation: Aggregation) -> TimeBins | None:
        """All keys together; None: nothing was added."""
        return self._all.get(aggregation.number)

    def by_key(self, aggregation: Aggregation) -> Iterator[tuple[Key, TimeBins]]:
        """The keys that have bins of their own, in the order in which they came."""
        yield from self._keys.get(aggregation.number, {}).items()
