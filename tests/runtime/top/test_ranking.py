"""Rates, shares, trends and the order of rows, from samples at known times."""

from kinst.runtime.top.ranking import Order, Ranking, matches, sparkline
from kinst.runtime.top.sample import Sample, Table


def ranking(*samples: tuple[float, float, dict[str, int]], is_growing: bool = True) -> Ranking:
    """Of samples: seconds of the host's time, of the guest's, and values."""
    found = Ranking()
    for wall, time, values in samples:
        table = Table("@", "count", values, {}, is_growing)
        found.add(Sample(int(wall * 1e9), int(time * 1e9), (table,), (), ()), table)
    return found


def test_rates_are_those_between_the_last_two_samples() -> None:
    found = ranking((0, 0, {"a": 5}), (1, 1, {"a": 105, "b": 50}), (1.5, 3, {"a": 115, "b": 150}))
    a, b = found.row("a"), found.row("b")
    assert (a.value, a.rate, a.guest_rate) == (115, 20.0, 5.0)
    assert (b.value, b.rate, b.guest_rate) == (150, 200.0, 50.0)
    assert (found.total, found.rate) == (265, 220.0)
    assert (a.share, b.share) == (115 / 265, 150 / 265)
    assert (a.length, b.length) == (115 / 150, 1.0)
    assert (a.trend, b.trend) == ("█▂", "▃█")


def test_orders() -> None:
    found = ranking((0, 0, {"a": 9, "b": 1, "c": 4}), (1, 1, {"a": 9, "b": 3, "c": 5}))
    assert found.keys(Order.RATE, "") == ["b", "c", "a"]
    assert found.keys(Order.VALUE, "") == ["a", "c", "b"]
    assert found.keys(Order.NAME, "") == ["a", "b", "c"]
    assert found.keys(Order.NAME, "b") == ["b"]


def test_what_a_program_clears_has_no_rate_below_zero() -> None:
    found = ranking((0, 0, {"a": 9, "b": 9}), (1, 1, {"a": 0}))
    assert (found.row("a").rate, found.keys(Order.RATE, "")) == (0.0, ["a"])


def test_averages_have_no_rate() -> None:
    found = ranking((0, 0, {"a": 1}), (1, 1, {"a": 9}), is_growing=False)
    assert (found.row("a").value, found.row("a").rate, found.rate) == (9, 0.0, 0.0)


def test_samples_at_the_same_moment_and_none() -> None:
    found = ranking((1, 1, {"a": 1}), (1, 1, {"a": 2}))
    assert found.row("a").rate == 0.0
    assert Ranking().keys(Order.RATE, "") == []


def test_patterns_are_of_the_whole_key_and_texts_of_a_part() -> None:
    assert [matches(wanted, "vfs_read") for wanted in ("", "s_r", "vfs_*", "*read", "vfs_?ead", "s_*")] == [
        True
    ] * 5 + [False]


def test_sparklines_show_what_is_there() -> None:
    assert sparkline([0, 1, 4, 8]) == " ▂▅█"
    assert sparkline([0, 0]) == "  "
    assert sparkline([]) == ""
    assert sparkline([1, 1_000_000]) == "▁█"  # not nothing
