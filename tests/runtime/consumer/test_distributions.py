"""Pictures of distributions, byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.clauses.buckets import bucket_function
from kinst.runtime.consumer.distributions import Style, packed, packed_header, packed_range, render
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation

QUANTIZE = Aggregation(1, "a", AggregatingFunction.QUANTIZE, ())
LINEAR = Aggregation(1, "a", AggregatingFunction.LQUANTIZE, (), (0, 10, 3))
LOG_LINEAR = Aggregation(1, "a", AggregatingFunction.LLQUANTIZE, (), (10, 0, 1, 10))
HEADER = b"\n           value  ------------- Distribution ------------- count    \n"


def buckets(aggregation: Aggregation, values: dict[int, int]) -> dict[int, int]:
    """value -> count as bucket -> count."""
    counts: dict[int, int] = {}
    for value, count in values.items():
        bucket = bucket_function(aggregation)(value)
        counts[bucket] = counts.get(bucket, 0) + count
    return counts


def lines(aggregation: Aggregation, values: dict[int, int], normal: int = 1, style: Style | None = None) -> list[str]:
    shown = render(aggregation, buckets(aggregation, values), normal, style or Style()).decode()
    assert shown.startswith(HEADER.decode())
    assert shown.endswith("\n")
    return shown.removeprefix(HEADER.decode()).split("\n")[:-1]


def line(label: str, bar: str, count: int) -> str:
    return f"{label:>16} |{bar:40} {count:<9}"


def test_quantize() -> None:
    assert lines(QUANTIZE, {1: 1, 5: 2, 9: 1}) == [
        line("0", "", 0),
        line("1", "@" * 10, 1),
        line("2", "", 0),
        line("4", "@" * 20, 2),
        line("8", "@" * 10, 1),
        line("16", "", 0),
    ]


def test_the_exact_bytes_of_a_line() -> None:
    shown = render(QUANTIZE, buckets(QUANTIZE, {0: 7}), 1)

    assert shown == HEADER + (
        b"              -1 |                                         0        \n"
        b"               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 7        \n"
        b"               1 |                                         0        \n"
    )


def test_quantize_at_the_ends() -> None:
    shown = lines(QUANTIZE, {-(1 << 63): 1, (1 << 63) - 1: 1})

    assert len(shown) == 127
    assert shown[0] == line("-4611686018427387904", "@" * 20, 1)
    assert shown[-1] == line("4611686018427387904", "@" * 20, 1)


def test_rounding_is_half_up() -> None:
    """1 of 80 is half a column."""
    assert lines(QUANTIZE, {1: 1, 2: 79})[1] == line("1", "@", 1)
    assert lines(QUANTIZE, {1: 1, 2: 80})[1] == line("1", "", 1)


def test_negative_counts_grow_from_the_right() -> None:
    assert lines(QUANTIZE, {1: -3}) == [
        f"{0:16} {'':40}| {0:<9}",
        f"{1:16} {'@' * 40}| {-3:<9}",
        f"{2:16} {'':40}| {0:<9}",
    ]


def test_mixed_counts_share_the_width() -> None:
    assert lines(QUANTIZE, {1: -1, 2: 3}) == [
        f"{0:16} {'':20}|{'':20} {0:<9}",
        f"{1:16} {'@' * 5:>20}|{'':20} {-1:<9}",
        f"{2:16} {'':20}|{'@' * 15:20} {3:<9}",
        f"{4:16} {'':20}|{'':20} {0:<9}",
    ]


def test_normalized_counts_have_the_same_bars() -> None:
    assert lines(QUANTIZE, {1: 7, 2: -7}, 2)[1] == f"{1:16} {'':20}|{'@' * 10:20} {3:<9}"
    assert lines(QUANTIZE, {1: 7, 2: -7}, 2)[2] == f"{2:16} {'@' * 10:>20}|{'':20} {-3:<9}"


@pytest.mark.parametrize(
    ("aggregation", "labels"),
    [(QUANTIZE, ["-1", "0", "1"]), (LINEAR, ["< 0", "0", "3"]), (LOG_LINEAR, ["< 1", "1"])],
)
@pytest.mark.parametrize("content", [{}, {65: 0}])
def test_nothing_is_shown_as_empty_buckets(
    aggregation: Aggregation, labels: list[str], content: dict[int, int]
) -> None:
    assert render(aggregation, content, 1).decode().split("\n")[2:-1] == [line(label, "", 0) for label in labels]


def test_lquantize() -> None:
    assert lines(LINEAR, {-1: 1, 4: 1, 9: 1, 11: 1}) == [
        line("< 0", "@" * 10, 1),
        line("0", "", 0),
        line("3", "@" * 10, 1),
        line("6", "", 0),
        line(">= 9", "@" * 20, 2),
    ]


def test_llquantize() -> None:
    """Steps of 1 below 10, of 10 below 100."""
    assert lines(LOG_LINEAR, {0: 1, 9: 1, 25: 1, 100: 1}) == [
        line("< 1", "@" * 10, 1),
        *(line(str(value), "", 0) for value in range(1, 9)),
        line("9", "@" * 10, 1),
        line("10", "", 0),
        line("20", "@" * 10, 1),
        *(line(str(value), "", 0) for value in range(30, 100, 10)),
        line(">= 100", "@" * 10, 1),
    ]


def test_zoomed_bars_take_nearly_the_width() -> None:
    assert [one.count("@") for one in lines(QUANTIZE, {1: 1, 2: 2, 4: 4}, style=Style(is_zoomed=True))] == [
        0,
        10,
        19,
        38,
        0,
    ]


def test_blocks() -> None:
    """utf8: eighths of a column."""
    shown = lines(QUANTIZE, {1: 1, 2: 15}, style=Style(has_blocks=True))

    assert shown[1] == line("1", "\u2588\u2588\u258c", 1)
    assert shown[2] == line("2", "\u2588" * 37 + "\u258c", 15)


@given(st.dictionaries(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-1000, 1000), min_size=1))
def test_every_line_is_of_the_same_shape(values: dict[int, int]) -> None:
    for one in lines(QUANTIZE, values):
        label = one.split()[0]
        assert one.startswith(f"{label:>16} ")
        rest = one[max(17, len(label) + 1) :]
        assert rest[:41].count("|") == 1
        assert set(rest[:41]) <= {"|", "@", " "}
        assert rest[41] == " "
        int(rest[42:])


def test_packed_quantize() -> None:
    rows = [buckets(QUANTIZE, {1: 10, 4: 5}), buckets(QUANTIZE, {2: 1})]
    shown = packed_range(QUANTIZE, rows)

    assert packed_header(QUANTIZE, shown, 9) == b"\n      key  min .-----. max  | count\n"
    assert packed(QUANTIZE, rows[0], shown, Style(packs_blocks=False)) == b"    0 : x x : 8    | 15\n"
    assert packed(QUANTIZE, rows[1], shown).decode() == "    0 :  \u2588  : 8    | 1\n"


def test_packed_lquantize_shows_the_whole_range() -> None:
    rows = [buckets(LINEAR, {-1: 1, 4: 3})]
    shown = packed_range(LINEAR, rows)

    assert packed_header(LINEAR, shown, 0) == b"\n     min .-----. max      | count\n"
    assert packed(LINEAR, rows[0], shown, Style(packs_blocks=False)) == b"     < 0 :x x  : >= 9     | 4\n"


def test_packed_negative_counts() -> None:
    rows = [buckets(QUANTIZE, {1: -4, 2: 1})]
    shown = packed_range(QUANTIZE, rows)

    assert packed(QUANTIZE, rows[0], shown, Style(packs_blocks=False)) == b"    0 : V_ : 4    | -3\n"
