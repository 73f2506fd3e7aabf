"""What is kept of snapshots: merging, clear, trunc, normalize, order of rows."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinst.runtime.clauses.environment import Stack, SymbolName
from kinst.runtime.consumer.totals import LIMIT, Row
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.types.types import CHAR, INT, LONG, STACK, STRING, SYMBOL
from tests.runtime.consumer.recording import Recording, aggregation

F = AggregatingFunction
NUMBERS = aggregation(F.SUM, INT)


def numbers(rows: Sequence[Row]) -> list[tuple[object, ...]]:
    return [(*row.key, *[cell.number for cell in row.cells]) for row in rows]


def summed(values: dict[int, int], **options: str | None) -> Recording:
    recording = Recording((), **options)
    for key, value in values.items():
        recording.add(NUMBERS, (key,), value)
    return recording


def rows(recording: Recording, made: Aggregation = NUMBERS) -> list[tuple[object, ...]]:
    return numbers(recording.totals.rows(made))


@pytest.mark.parametrize(
    ("function", "expected"),
    [(F.COUNT, 4), (F.SUM, -4), (F.MIN, -9), (F.MAX, 3), (F.AVG, -1), (F.STDDEV, 4)],
)
def test_snapshots_of_all_cpus_are_merged(function: AggregatingFunction, expected: int) -> None:
    recording = Recording()
    made = aggregation(function)
    recording.add(made, (), 3, 1)
    recording.add(made, (), 1, cpu=1)
    recording.add(made, (), -9, cpu=1)

    assert rows(recording, made) == [(expected,)]


def test_distributions_are_merged() -> None:
    recording = Recording()
    made = aggregation(F.QUANTIZE)
    recording.add(made, (), 5, 6)
    recording.add(made, (), 7, -1, cpu=1, increment=3)

    assert recording.totals.rows(made)[0].cells[0].buckets == {66: 5, 62: 3}


def test_sums_are_64_bits() -> None:
    big = (1 << 63) - 1

    assert rows(summed({1: big, 2: 1 << 63, 3: (1 << 64) - 1})) == [(2, -(1 << 63)), (3, -1), (1, big)]
    recording = Recording()
    recording.add(NUMBERS, (1,), big, big)
    recording.add(NUMBERS, (1,), 3)
    assert rows(recording) == [(1, 1)]


_INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(_INT64, min_size=1, max_size=20))
@example([562930347434700, -9223372036854689734, 9223372028390859378, 9223372028265435704, -(1 << 63)])
@example([-(1 << 63)] * 4)
def test_deviation_is_of_128_bits(values: list[int]) -> None:
    """As dtrace_aggregate_stddev() and dt_stddev() have it: the total is an int64_t, the squares are added in 128 bits
    without a sign, and each of them wraps: four squares of the least number are nothing."""
    recording = Recording()
    made = aggregation(F.STDDEV)
    recording.add(made, (), *values)
    total, squares = 0, 0
    for value in values:
        total = (total + value + (1 << 63)) % (1 << 64) - (1 << 63)
        squares = (squares + value * value) % (1 << 128)
    mean = abs(total) // len(values)
    variance = (squares // len(values) - mean * mean) % (1 << 128)
    deviation = recording.totals.rows(made)[0].cells[0].number % (1 << 64)
    assert deviation**2 <= variance < (deviation + 1) ** 2


def test_average_is_cut_toward_zero() -> None:
    recording = Recording()
    made = aggregation(F.AVG)
    recording.add(made, (), -7, 0)

    assert rows(recording, made) == [(-3,)]
    recording.totals.normalize(made, 2)
    assert rows(recording, made) == [(-1,)]  # -7 / 2 is -3, and that / 2


def test_clear_keeps_the_keys() -> None:
    recording = summed({1: 5, 2: 7})
    recording.totals.clear(NUMBERS)

    assert rows(recording) == [(1, 0), (2, 0)]
    recording.add(NUMBERS, (2,), 4)
    assert rows(recording) == [(1, 0), (2, 4)]


@pytest.mark.parametrize(("function", "value"), [(F.MIN, 0), (F.MAX, 5), (F.AVG, 5), (F.STDDEV, 0), (F.COUNT, 1)])
def test_what_comes_after_clear_meets_zero(function: AggregatingFunction, value: int) -> None:
    recording = Recording()
    made = aggregation(function)
    recording.add(made, (), 9)
    recording.totals.clear(made)
    recording.add(made, (), 5)

    assert rows(recording, made) == [(value,)]


@pytest.mark.parametrize(
    ("count", "kept"),
    [(2, [3, 4]), (-2, [1, 2]), (0, []), (None, []), (9, [1, 2, 3, 4]), (-9, [1, 2, 3, 4])],
)
def test_trunc(count: int | None, kept: list[int]) -> None:
    recording = summed({4: 40, 1: 10, 3: 30, 2: 20})
    recording.totals.trunc(NUMBERS, count)

    assert [key for key, _ in rows(recording)] == kept
    recording.add(NUMBERS, (1,), 1)
    assert (1, 1 + 10 * (1 in kept)) in rows(recording)


def test_trunc_of_equal_values_goes_by_the_keys_and_ignores_the_options() -> None:
    recording = summed({1: 5, 2: 5, 3: 5}, aggsortrev=None, aggsortkey=None)
    recording.totals.trunc(NUMBERS, 2)

    assert rows(recording) == [(3, 5), (2, 5)]


def test_normalize_is_for_the_keys_of_the_moment() -> None:
    recording = summed({1: 10, 2: -15})
    recording.totals.normalize(NUMBERS, 4)
    recording.add(NUMBERS, (3,), 8)

    assert rows(recording) == [(2, -3), (3, 8), (1, 2)]  # the order is of the values as aggregated
    recording.add(NUMBERS, (1,), 10)
    assert (1, 5) in rows(recording)
    recording.totals.denormalize(NUMBERS)
    assert rows(recording) == [(2, -15), (3, 8), (1, 20)]


@pytest.mark.parametrize("normal", [0, 1])
def test_no_division_by_zero(normal: int) -> None:
    recording = summed({1: 10})
    recording.totals.normalize(NUMBERS, normal)

    assert rows(recording) == [(1, 10)]


# -- order ------------------------------------------------------------------------------------------------------------


def test_by_value_and_then_by_key() -> None:
    assert rows(summed({3: 1, 1: 2, 2: 1, -1: 1})) == [(2, 1), (3, 1), (-1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({"aggsortkey": None}, [1, 2, 3, -1]),
        ({"aggsortrev": None}, [1, -1, 3, 2]),
        ({"aggsortkey": None, "aggsortrev": None}, [-1, 3, 2, 1]),
    ],
)
def test_options_change_the_order(options: dict[str, str | None], keys: list[int]) -> None:
    assert [key for key, _ in rows(summed({3: 1, 1: 2, 2: 1, -1: 1}, **options))] == keys


@pytest.mark.parametrize(
    ("position", "keys"), [("0", [(1, 9), (2, 1)]), ("1", [(2, 1), (1, 9)]), ("7", [(1, 9), (2, 1)])]
)
def test_the_key_to_sort_by(position: str, keys: list[tuple[int, int]]) -> None:
    recording = Recording(aggsortkey=None, aggsortkeypos=position)
    made = aggregation(F.COUNT, INT, LONG)
    for key in [(2, 1), (1, 9)]:
        recording.add(made, key, 0)

    assert [row.key for row in recording.totals.rows(made)] == keys


def test_texts_are_compared_as_bytes_and_narrow_numbers_unsigned() -> None:
    recording = Recording()
    made = aggregation(F.COUNT, STRING, CHAR)
    for key in [(b"b", 1), (b"a\xff", 1), (b"ab", 1), (b"ab", -1), (b"", 1)]:
        recording.add(made, key, 0)

    assert [row.key for row in recording.totals.rows(made)] == [
        (b"", 1),
        (b"ab", 1),
        (b"ab", -1),
        (b"a\xff", 1),
        (b"b", 1),
    ]


def test_stacks_and_symbols() -> None:
    recording = Recording()
    made = aggregation(F.COUNT, STACK, SYMBOL)
    low, high = Stack((0x1001, 5), 20), Stack((0x0102, 5), 20)
    for key in [(high, SymbolName("sym", 1)), (low, SymbolName("sym", 9)), (low, SymbolName("sym", 2))]:
        recording.add(made, key, 0)

    assert [row.key for row in recording.totals.rows(made)] == [
        (low, SymbolName("sym", 2)),
        (low, SymbolName("sym", 9)),
        (high, SymbolName("sym", 1)),
    ]


def test_distributions_are_sorted_by_their_weight_and_then_their_zeros() -> None:
    recording = Recording()
    made = aggregation(F.QUANTIZE, INT)
    recording.add(made, (1,), 100)
    recording.add(made, (2,), *[1] * 3)
    recording.add(made, (3,), 2, 1, 0)
    recording.add(made, (4,), -9)

    assert [row.key for row in recording.totals.rows(made)] == [(4,), (2,), (3,), (1,)]


@pytest.mark.parametrize(("function", "parameters"), [(F.LQUANTIZE, (0, 100, 10)), (F.LLQUANTIZE, (10, 0, 3, 10))])
def test_other_distributions_likewise(function: AggregatingFunction, parameters: tuple[int, ...]) -> None:
    recording = Recording()
    made = aggregation(function, INT, parameters=parameters)
    recording.add(made, (1,), 95)
    recording.add(made, (2,), 15, 15)
    recording.add(made, (3,), 1_000_000)

    assert [row.key for row in recording.totals.rows(made)] == [(2,), (1,), (3,)]


# -- several together -------------------------------------------------------------------------------------------------

SECOND = aggregation(F.MAX, INT, number=2)


def joined(**options: str | None) -> list[tuple[object, ...]]:
    recording = summed({1: 5, 2: 3}, **options)
    for key, value in {2: 8, 3: 9, 1: 10}.items():
        recording.add(SECOND, (key,), value)
    return numbers(recording.totals.joined([NUMBERS, SECOND]))


def test_joined_rows_have_zeros_where_one_has_no_such_key() -> None:
    assert joined() == [(3, 0, 9), (2, 3, 8), (1, 5, 10)]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({"aggsortpos": "1"}, [2, 3, 1]),
        ({"aggsortpos": "2"}, [3, 2, 1]),
        ({"aggsortkey": None}, [1, 2, 3]),
        ({"aggsortrev": None}, [1, 2, 3]),
        ({"aggsortpos": "1", "aggsortrev": None}, [1, 3, 2]),
    ],
)
def test_order_of_joined_rows(options: dict[str, str | None], keys: list[int]) -> None:
    assert [row[0] for row in joined(**options)] == keys


def test_the_same_aggregation_twice() -> None:
    recording = summed({1: 5})

    assert numbers(recording.totals.joined([NUMBERS, NUMBERS])) == [(1, 5, 5)]


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_endless_keys_end_in_drops_over_many_snapshots() -> None:
    recording = Recording()
    made = aggregation(F.COUNT, STRING)
    big = bytes(4 << 20)
    for number in range(70):
        recording.add(made, (big + bytes([number]),), 0, cpu=1)

    assert len(recording.totals.rows(made)) == LIMIT // ((4 << 20) + 300)
    assert recording.totals.take_drops() == {1: 70 - len(recording.totals.rows(made))}
    assert recording.totals.take_drops() == {}
    recording.totals.trunc(made, 1)
    recording.add(made, (big + b"new",), 0)
    assert len(recording.totals.rows(made)) == 2


def test_unprinted_ones_in_the_order_of_their_definition() -> None:
    recording = Recording()
    third, first = aggregation(F.COUNT, number=3), aggregation(F.COUNT, number=1)
    for made in (third, first, aggregation(F.COUNT, number=2)):
        recording.add(made, (), 0)
    recording.totals.mark_printed([first])
    recording.totals.trunc(aggregation(F.COUNT, number=2), None)

    assert recording.totals.unprinted() == [third]
