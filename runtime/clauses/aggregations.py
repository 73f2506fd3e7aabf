"""@name[keys] = function(value, increment) while clauses run: contents per CPU, moved out for each snapshot.

A key's value is a number for count, sum, min and max; [count, total] for avg, with the sum of squares for stddev; and
bucket -> count for the quantizing functions. Sums are not wrapped to 64 bits here: `kinst.runtime.consumer.totals` does
it once, when it merges them.

A hit must cost no more than a dictionary access, so each aggregation has a closure of its own, and space is accounted
for only when a key is new. A key that is known raises no exception on its way, which is the cheapest `try` there is.

A key here is a tuple of Python values, so that a number is one key whatever the type of the clause's expression. DTrace
compares the bytes of records: `kinst.runtime.dlang.check.key_types` says where that differs.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kinst.runtime.clauses.buckets import INT64_MAX, bucket_function, signed
from kinst.runtime.clauses.environment import Stack, Value
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.types.types import Dynamic, String, bare
from kinst.targets.c_types import size_of
from kinst.targets.values import dataclass

Key = tuple[Value, ...]
Number = int
Moments = list[int]  # count, total, and for stddev the sum of squares
Distribution = dict[int, int]  # bucket -> count
Content = Number | Moments | Distribution
Table = dict[Key, Any]  # values are `Content`, all of one kind
Updater = Callable[[int, Key, int, int], None]

LIMIT: Final = 256 << 20  # bytes of our own memory for all CPUs together
_WRAP: Final = 1 << 64
_DEVIATION: Final = 3  # how many moments stddev has
_ENTRY: Final = 200  # bytes of a key's entry in our memory: a slot of the dictionary, a tuple, a number
_ITEM: Final = 40  # bytes of each of its values, besides the contents
_BUCKET: Final = 100
_KERNEL_ENTRY: Final = 64  # bytes of aggsize that an entry of the kernel's hash table takes
_KERNEL_SIZES: Final = {
    AggregatingFunction.AVG: 16,
    AggregatingFunction.STDDEV: 32,
    AggregatingFunction.QUANTIZE: 127 * 8,
}


def memory_of(key: Key) -> int:
    """Approximately the bytes that an entry with this key takes in our memory."""
    return _ENTRY + sum(map(_memory_of_value, key))


def _memory_of_value(value: Value) -> int:
    match value:
        case bytes():
            return _ITEM + len(value)
        case Stack(addresses=addresses):
            return _ITEM * (len(addresses) + 3)
        case _:
            return _ITEM


@dataclass(frozen=True, slots=True)
class Contents:
    """What one aggregation got on one CPU since the last snapshot."""

    cpu: int
    aggregation: Aggregation
    table: Table


class AggregationStore:
    """The aggregations of a session. `drops` counts, by CPU, updates for which there was no space since the last
    `take_drops`."""

    def __init__(self, size: int | None, strsize: int = 256) -> None:
        """`size`: aggsize, bytes per CPU as the kernel counts them; None: only our memory is a limit. `strsize`: the
        bytes that the kernel counts for a string."""
        self.drops: Counter[int] = Counter()
        self._size, self._strsize = size, strsize
        self._used: Counter[int] = Counter()  # bytes of `size` by CPU
        self._memory = 0  # bytes of LIMIT
        self._tables: dict[int, tuple[Aggregation, defaultdict[int, Table]]] = {}

    def take(self) -> list[Contents]:
        """What was aggregated since the last time. The buffers are empty afterwards, as after the kernel switches
        them."""
        taken = []
        for aggregation, tables in self._tables.values():
            taken += [Contents(cpu, aggregation, table) for cpu, table in tables.items() if table]
            tables.clear()
        self._used.clear()
        self._memory = 0
        return taken

    def take_drops(self) -> dict[int, int]:
        """`drops` since the last time; they start at 0 again."""
        taken = dict(self.drops)
        self.drops.clear()
        return taken

    def updater(self, aggregation: Aggregation) -> Updater:
        """A function that adds one value: it takes the CPU, key, value and increment."""
        tables, admit = self._space(aggregation)
        make = _UPDATERS.get(aggregation.function)
        if make is not None:
            return make(tables, admit)
        return self._quantizing(tables, admit, bucket_function(aggregation))

    def adder(self, aggregation: Aggregation) -> Callable[[int, Key, int, int, int], None]:
        """A function that adds a value several times: it takes the CPU, key, value, increment and number.

        It adds the value once as `updater` does, which decides whether there is space for the key, and then corrects
        the result for the other times. For min and max there is nothing to correct, and for sum and the quantizing
        functions the value or the increment is multiplied before.
        """
        update, drops = self.updater(aggregation), self.drops
        tables, _ = self._space(aggregation)
        more, is_sum = _MORE.get(aggregation.function), aggregation.function is AggregatingFunction.SUM

        def add(cpu: int, key: Key, value: int, increment: int, number: int) -> None:
            before = drops[cpu]
            update(cpu, key, value * number if is_sum else value, increment * number)
            if drops[cpu] != before:
                drops[cpu] += number - 1  # `update` has counted the first
            elif more is not None:
                table = tables[cpu]
                table[key] = more(table[key], value, number - 1)

        return add

    def _space(self, aggregation: Aggregation) -> tuple["Tables", "Admit"]:
        """An aggregation's tables, and what decides whether there is space for a new key."""
        _, tables = self._tables.setdefault(aggregation.number, (aggregation, defaultdict(dict)))
        cost = _kernel_cost(aggregation, self._strsize)

        def admit(cpu: int, key: Key) -> bool:
            """Whether there is space for a new key; if so, take it."""
            used, memory = self._used[cpu] + cost, self._memory + memory_of(key)
            if memory > LIMIT or (self._size is not None and used > self._size):
                self.drops[cpu] += 1
                return False
            self._used[cpu], self._memory = used, memory
            return True

        return tables, admit

    def _quantizing(self, tables: "Tables", admit: "Admit", bucket_of: Callable[[int], int]) -> Updater:
        def update(cpu: int, key: Key, value: int, increment: int) -> None:
            buckets = tables[cpu].get(key)
            if buckets is None:
                if not admit(cpu, key):
                    return
                buckets = tables[cpu][key] = {}
            bucket = bucket_of(value)
            try:
                buckets[bucket] += increment
            except KeyError:
                if self._memory + _BUCKET > LIMIT:
                    self.drops[cpu] += 1
                    return
                self._memory += _BUCKET
                buckets[bucket] = increment

        return update


Tables = defaultdict[int, Table]
Admit = Callable[[int, Key], bool]


def _counting(tables: Tables, admit: Admit) -> Updater:
    def update(cpu: int, key: Key, _value: int, _increment: int) -> None:
        table = tables[cpu]
        try:
            table[key] += 1
        except KeyError:
            if admit(cpu, key):
                table[key] = 1

    return update


def _summing(tables: Tables, admit: Admit) -> Updater:
    def update(cpu: int, key: Key, value: int, _increment: int) -> None:
        table = tables[cpu]
        try:
            table[key] += value
        except KeyError:
            if admit(cpu, key):
                table[key] = value

    return update


def _choosing(tables: Tables, admit: Admit, choose: Callable[[int, int], int]) -> Updater:
    """The updater of min and max, which compare as int64."""

    def update(cpu: int, key: Key, value: int, _increment: int) -> None:
        if value > INT64_MAX:
            value -= _WRAP
        table = tables[cpu]
        try:
            table[key] = choose(table[key], value)
        except KeyError:
            if admit(cpu, key):
                table[key] = value

    return update


def _averaging(tables: Tables, admit: Admit) -> Updater:
    def update(cpu: int, key: Key, value: int, _increment: int) -> None:
        moments = tables[cpu].get(key)
        if moments is not None:
            moments[0] += 1
            moments[1] += value
        elif admit(cpu, key):
            tables[cpu][key] = [1, value]

    return update


def _deviating(tables: Tables, admit: Admit) -> Updater:
    def update(cpu: int, key: Key, value: int, _increment: int) -> None:
        if value > INT64_MAX:
            value -= _WRAP
        moments = tables[cpu].get(key)
        if moments is not None:
            moments[0] += 1
            moments[1] += value
            moments[2] += value * value
        elif admit(cpu, key):
            tables[cpu][key] = [1, value, value * value]

    return update


def _more_hits(count: int, _value: int, number: int) -> int:
    return count + number


def _more_moments(moments: Moments, value: int, number: int) -> Moments:
    """Add a value `number` more times to moments. The value is squared as an int64, as `_deviating` does."""
    moments[0] += number
    if len(moments) == _DEVIATION:
        value = signed(value)
        moments[2] += value * value * number
    moments[1] += value * number
    return moments


# How `adder` corrects the result for more hits with the same value, where it cannot multiply value or increment.
_MORE: Final[dict[AggregatingFunction, Callable[[Any, int, int], Any]]] = {
    AggregatingFunction.COUNT: _more_hits,
    AggregatingFunction.AVG: _more_moments,
    AggregatingFunction.STDDEV: _more_moments,
}
_UPDATERS: Final[dict[AggregatingFunction, Callable[[Tables, Admit], Updater]]] = {
    AggregatingFunction.COUNT: _counting,
    AggregatingFunction.SUM: _summing,
    AggregatingFunction.MIN: partial(_choosing, choose=min),
    AggregatingFunction.MAX: partial(_choosing, choose=max),
    AggregatingFunction.AVG: _averaging,
    AggregatingFunction.STDDEV: _deviating,
}


def _kernel_cost(aggregation: Aggregation, strsize: int) -> int:
    """The bytes of aggsize that a key takes: its hash entry, and a record of the keys and the aggregated data."""
    size = _KERNEL_SIZES.get(aggregation.function, 8)
    if aggregation.function is AggregatingFunction.LQUANTIZE:
        base, limit, step = aggregation.parameters
        size = ((limit - base) // step + 3) * 8
    for key in aggregation.keys:
        kind = bare(key)
        if isinstance(kind, String):
            size += strsize
        elif isinstance(kind, Dynamic):
            size += 160
        else:
            size += max(8, size_of(kind) or 8)
    return _KERNEL_ENTRY + size
