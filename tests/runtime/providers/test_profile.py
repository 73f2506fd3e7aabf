"""Timers: which names there are, and when they fire."""

from collections.abc import Callable

import pytest

from kinst.runtime.providers.profile import ProfileProvider, interval
from kinst.runtime.providers.provider import Providers
from kinst.runtime.trap.trap import Firing
from kinst.targets.probe import parse_probe_name
from tests.runtime.providers.hosts import Clock

MS = 1_000_000
SECOND = 1000 * MS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tick-1", (False, SECOND)),
        ("profile-97", (True, SECOND // 97)),
        ("tick-5hz", (False, SECOND // 5)),
        ("tick-5HZ", (False, SECOND // 5)),
        ("tick-200us", (False, 200_000)),
        ("tick-200000ns", (False, 200_000)),
        ("tick-199999nsec", None),
        ("profile-200000nsec", (True, 200_000)),
        ("tick-199usec", None),
        ("tick-5000", (False, 200_000)),
        ("tick-5001", None),
        ("profile-10ms", (True, 10 * MS)),
        ("tick-1Msec", (False, MS)),
        ("tick-2s", (False, 2 * SECOND)),
        ("tick-2sec", (False, 2 * SECOND)),
        ("tick-1m", (False, 60 * SECOND)),
        ("tick-1min", (False, 60 * SECOND)),
        ("tick-1h", (False, 3600 * SECOND)),
        ("tick-1hour", (False, 3600 * SECOND)),
        ("tick-1d", (False, 86400 * SECOND)),
        ("tick-1day", (False, 86400 * SECOND)),
        ("tick-007s", (False, 7 * SECOND)),
        ("tick-0", None),
        ("tick-0s", None),
        ("tick-", None),
        ("tick-s", None),
        ("tick-1.5s", None),
        ("tick--1s", None),
        ("tick-1fortnight", None),
        ("tick-1days", None),
        ("tick-1s1", None),
        ("tick-1٣", None),
        ("tock-1s", None),
        ("profile", None),
        ("tick-9223372036s", (False, 9223372036 * SECOND)),
        ("tick-9223372037s", None),  # more than 63 bits of ns
        (f"tick-1{58 * '0'}", None),  # 64 characters
        (f"tick-{57 * '0'}1", (False, SECOND)),
    ],
)
def test_names(name: str, expected: tuple[bool, int] | None) -> None:
    assert interval(name) == expected


def with_timers(clock: Clock, **actions: Callable[[Firing], None]) -> Providers:
    """Timers by name, `_` for a dash."""
    providers = Providers([ProfileProvider(clock)])
    for name, action in actions.items():
        found = providers.match(parse_probe_name(name.replace("_", "-")))
        assert len(found) == 1
        providers.enable(found, action)
    return providers


def names(providers: Providers, pattern: str) -> list[str]:
    return [str(providers.probe(number)) for number in providers.match(parse_probe_name(pattern)).tolist()]


def test_the_usual_rates_are_always_there_and_others_on_demand() -> None:
    providers = Providers([ProfileProvider(Clock())])
    usual = [f"profile:::tick-{rate}" for rate in (1, 10, 100, 500, 1000, 5000)]
    assert names(providers, "tick-*") == usual
    assert len(names(providers, "profile:::")) == 13
    assert names(providers, "tick-3sec") == ["profile:::tick-3sec"]
    assert names(providers, "profile:::tick-1") == ["profile:::tick-1"]
    assert len(names(providers, "profile:::")) == 14
    assert names(providers, "tick-3fort") == names(providers, "profile:m::tick-4s") == []


def test_there_are_at_most_a_thousand() -> None:
    providers = Providers([ProfileProvider(Clock())])
    found = [len(names(providers, f"tick-{number}s")) for number in range(1, 1100)]
    assert found == [1] * 987 + [0] * 112


def test_timers_count_from_where_they_were_enabled_and_do_not_drift() -> None:
    clock = Clock()
    clock.time = 7
    seen: list[int] = []
    with_timers(clock, tick_1ms=lambda _firing: seen.append(clock.time))
    clock.go(7 + 5 * MS)
    assert seen == [7 + number * MS for number in range(1, 6)]


def test_what_is_due_at_once_fires_in_the_order_of_identifiers() -> None:
    clock = Clock()
    seen: list[str] = []
    with_timers(clock, tick_10ms=lambda _firing: seen.append("10"), tick_5ms=lambda _firing: seen.append("5"))
    clock.go(20 * MS)
    assert seen == ["5", "10", "5", "5", "10", "5"]


def test_missed_intervals_are_made_up_for_with_their_lateness() -> None:
    clock = Clock()
    late: list[tuple[int, int]] = []
    with_timers(
        clock,
        profile_1ms=lambda firing: late.append((1, firing.argument(2))),
        tick_2ms=lambda firing: late.append((2, firing.argument(2))),
    )
    clock.time = 4 * MS + 100
    clock.timed[0].advance()
    assert late == [(1, 3 * MS + 100), (1, 2 * MS + 100), (2, 0), (1, MS + 100), (1, 100), (2, 0)]
    assert clock.timed[0].deadline() == 5 * MS


def test_a_timer_more_than_a_second_late_skips() -> None:
    clock = Clock()
    late: list[int] = []
    with_timers(clock, profile_1ms=lambda firing: late.append(firing.argument(2)))
    clock.time = 5 * SECOND + 300
    clock.timed[0].advance()
    assert late == [5 * SECOND + 300 - MS]
    assert clock.timed[0].deadline() == 5 * SECOND + MS


def test_profile_fires_on_every_cpu_that_is_on_and_tick_on_one() -> None:
    clock = Clock([1, 2])
    clock.user = {2}
    seen: list[tuple[str, int, int, list[int]]] = []

    def action(name: str) -> Callable[[Firing], None]:
        return lambda firing: seen.append(
            (name, firing.cpu, firing.thread, [firing.argument(index) for index in range(4)])
        )

    with_timers(clock, profile_1s=action("profile"), tick_1s=action("tick"))
    clock.go(SECOND)
    clock.on = [2]
    clock.go(2 * SECOND)
    assert [fired[:3] for fired in seen] == [
        ("profile", 1, -3), ("profile", 2, -4), ("tick", 1, -3), ("profile", 2, -4), ("tick", 2, -4),
    ]  # fmt: skip
    arguments = {(name, cpu): values for name, cpu, _, values in seen}
    assert arguments["profile", 1] == [0x1001, 0, 0, 0]
    assert arguments["profile", 2] == [0, 0x1002, 0, 0]


def test_enabling_again_changes_the_action_and_not_the_time() -> None:
    clock = Clock()
    seen: list[str] = []
    providers = with_timers(clock, tick_2s=lambda _firing: seen.append("before"))
    clock.go(SECOND)
    found = providers.match(parse_probe_name("tick-2s"))
    providers.enable(found, lambda _firing: seen.append("after"))
    clock.go(2 * SECOND)
    assert seen == ["after"]
    assert len(clock.timed) == 1
    providers.disable(found)
    clock.go(9 * SECOND)
    assert seen == ["after"]
    assert clock.timed[0].deadline() is None


def test_an_action_may_disable_its_own_timer() -> None:
    clock = Clock()
    seen: list[int] = []

    def action(_firing: Firing) -> None:
        seen.append(clock.time)
        providers.disable(found)

    providers = with_timers(clock)
    found = providers.match(parse_probe_name("tick-1ms"))
    providers.enable(found, action)
    clock.time = 10 * MS
    clock.timed[0].advance()
    assert seen == [10 * MS]
