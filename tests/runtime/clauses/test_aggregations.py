"""Aggregations while they grow: each function against a direct count, buckets at their edges, room."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.clauses.aggregations import LIMIT, AggregationStore
from kinst.runtime.clauses.buckets import linear, log_linear, quantize_bucket, quantize_value
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.types.types import INT, STRING

MIN, MAX = -(1 << 63), (1 << 63) - 1
int64 = st.one_of(st.integers(MIN, MAX), st.integers(-300, 300), st.sampled_from([MIN, MIN + 1, -1, 0, 1, MAX]))


def aggregation(function: AggregatingFunction, *parameters: int, number: int = 1) -> Aggregation:
    return Aggregation(number, "a", function, (INT,), parameters)


def aggregated(made: Aggregation, values: list[tuple[int, int]]) -> object:
    """The content of one key."""
    store = AggregationStore(None)
    update = store.updater(made)
    for value, increment in values:
        update(0, (1,), value, increment)
    return store.take()[0].table[(1,)]


def ones(values: list[int]) -> list[tuple[int, int]]:
    return [(value, 1) for value in values]


@given(st.lists(int64, min_size=1))
def test_scalar_functions(values: list[int]) -> None:
    functions = AggregatingFunction

    assert aggregated(aggregation(functions.COUNT), ones(values)) == len(values)
    assert aggregated(aggregation(functions.SUM), ones(values)) == sum(values)
    assert aggregated(aggregation(functions.MIN), ones(values)) == min(values)
    assert aggregated(aggregation(functions.MAX), ones(values)) == max(values)
    assert aggregated(aggregation(functions.AVG), ones(values)) == [len(values), sum(values)]
    squares = sum(value * value for value in values)
    assert aggregated(aggregation(functions.STDDEV), ones(values)) == [len(values), sum(values), squares]


@pytest.mark.parametrize("function", [AggregatingFunction.MIN, AggregatingFunction.MAX])
def test_min_and_max_see_int64(function: AggregatingFunction) -> None:
    assert aggregated(aggregation(function), ones([(1 << 64) - 5])) == -5


def direct_quantize(value: int) -> int:
    """The rule as words: 0, the largest power of two that is not larger, mirrored; nothing beyond 2^62."""
    if value == 0:
        return 0
    power = 1
    while power * 2 <= abs(value) and power < 1 << 62:
        power *= 2
    return power if value > 0 else -power


@given(st.lists(st.tuples(int64, st.integers(-5, 5)), min_size=1))
def test_quantize_counts_what_a_direct_count_does(values: list[tuple[int, int]]) -> None:
    counts: dict[int, int] = {}
    for value, increment in values:
        counts[direct_quantize(value)] = counts.get(direct_quantize(value), 0) + increment

    content = aggregated(aggregation(AggregatingFunction.QUANTIZE), values)

    assert isinstance(content, dict)
    assert {quantize_value(bucket): count for bucket, count in content.items()} == counts


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (MIN, -(1 << 62)),
        (-(1 << 62), -(1 << 62)),
        (-5, -4),
        (-4, -4),
        (-1, -1),
        (0, 0),
        (1, 1),
        (3, 2),
        (4, 4),
        (MAX, 1 << 62),
        (1 << 63, -(1 << 62)),
        ((1 << 64) - 1, -1),
    ],
)
def test_quantize_at_the_edges(value: int, name: int) -> None:
    bucket = quantize_bucket(value)

    assert 0 <= bucket <= 126
    assert quantize_value(bucket) == name


@given(int64, st.integers(-1000, 1000), st.integers(1, 50), st.integers(1, 20))
def test_lquantize_bucket(value: int, base: int, step: int, levels: int) -> None:
    buckets = linear((base, base + step * levels, step))
    low = value & 0xFFFFFFFF
    seen = low - (1 << 32) if low >= 1 << 31 else low
    expected = sum(1 for start in range(base, base + step * levels + 1, step) if seen >= start)

    assert buckets.bucket(value) == expected


def test_lquantize_with_a_step_that_does_not_divide_the_range() -> None:
    """0, 10, step 3: three whole levels; the rest begins at 9."""
    buckets = linear((0, 10, 3))

    assert [buckets.bucket(value) for value in (-1, 0, 2, 3, 8, 9, 10, 100)] == [0, 1, 1, 2, 3, 4, 4, 4]
    assert buckets.start(4) == 9


def kernel_llquantize(parameters: tuple[int, int, int, int], value: int) -> int:
    """Order by order, as the rule is told: below the first order, then each order cut into equal steps."""
    factor, low, high, steps = parameters
    last: int = factor**low
    if value < last:
        return 0
    bucket = 1
    for order in range(low, high + 1):
        end: int = factor ** (order + 1)
        count = min(steps, end)
        if value < end:
            return bucket + (value - last) // (end // count)
        bucket += count - count // factor
        last = end
    return bucket


@pytest.mark.parametrize("parameters", [(10, 0, 6, 20), (10, 3, 6, 100), (2, 0, 10, 2), (2, 1, 12, 8), (3, 0, 4, 9)])
@given(value=st.one_of(int64, st.integers(0, 2_000_000)))
def test_llquantize_bucket(parameters: tuple[int, int, int, int], value: int) -> None:
    content = aggregated(aggregation(AggregatingFunction.LLQUANTIZE, *parameters), ones([value]))

    assert content == {kernel_llquantize(parameters, value): 1}


def test_llquantize_up_to_the_end_of_int64() -> None:
    starts = log_linear((10, 17, 18, 10))

    assert starts[0] == 10**17
    assert starts[-1] == 9 * 10**18  # 10 ** 19 is no int64
    assert aggregated(aggregation(AggregatingFunction.LLQUANTIZE, 10, 17, 18, 10), ones([MAX])) == {len(starts): 1}


def test_contents_are_by_cpu_and_move_out() -> None:
    store = AggregationStore(None)
    count = store.updater(aggregation(AggregatingFunction.COUNT))
    total = store.updater(aggregation(AggregatingFunction.SUM, number=2))
    count(0, (5,), 0, 1)
    count(1, (5,), 0, 1)
    count(1, (5,), 0, 1)
    total(0, (), 7, 1)

    taken = [(one.cpu, one.aggregation.number, one.table) for one in store.take()]
    assert taken == [(0, 1, {(5,): 1}), (1, 1, {(5,): 2}), (0, 2, {(): 7})]
    assert store.take() == []
    count(0, (5,), 0, 1)
    assert [one.table for one in store.take()] == [{(5,): 1}]


def test_clauses_share_an_aggregation() -> None:
    store = AggregationStore(None)
    for _ in range(2):
        store.updater(aggregation(AggregatingFunction.COUNT))(0, (1,), 0, 1)

    assert [one.table for one in store.take()] == [{(1,): 2}]


def test_aggsize_bounds_the_keys_of_a_cpu() -> None:
    store = AggregationStore(1024)
    update = store.updater(aggregation(AggregatingFunction.COUNT))
    for key in range(100):
        update(0, (key,), 0, 1)
        update(0, (0,), 0, 1)
    update(1, (0,), 0, 1)
    contents = {one.cpu: one.table for one in store.take()}

    assert 5 < len(contents[0]) < 30
    assert contents[0][(0,)] == 101  # a key that is there is never dropped
    assert contents[1] == {(0,): 1}
    assert store.take_drops() == {0: 100 - len(contents[0])}
    assert store.take_drops() == {}
    update(0, (99,), 0, 1)
    assert not store.drops


def test_endless_keys_end_in_drops() -> None:
    store = AggregationStore(None)
    update = store.updater(Aggregation(1, "a", AggregatingFunction.COUNT, (STRING,)))
    big = bytes(1 << 20)
    for number in range(400):
        update(0, (big + number.to_bytes(2, "little"),), 0, 1)

    assert sum(len(one.table) for one in store.take()) == LIMIT // ((1 << 20) + 242)
    assert store.drops[0] > 100


def test_a_million_keys_fit() -> None:
    store = AggregationStore(None)
    update = store.updater(aggregation(AggregatingFunction.COUNT))
    tracemalloc.start()
    for key in range(100_000):
        update(0, (key + 1000,), 0, 1)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert used / 100_000 < 250  # so that a million stay far below 500 MB, of which `LIMIT` has the larger half
    assert LIMIT / 250 > 1_000_000
    assert not store.drops
