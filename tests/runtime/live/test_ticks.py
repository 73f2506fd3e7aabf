"""What the clock of a sample kernel explains, and that it explains nothing else."""

import random
from typing import Final

import pytest

from tests.runtime.live.ticks import unexplained

HERE: Final = {
    "clock_tick": 20,
    "callout_process": 20,
    "trap_vector": 25,
    "trap_handler": 25,
    "callout_execute": 26,
    "vfs_get": 176,
    "kfree": 426,
    "kmain": 1,
}


def with_ticks(sections: list[int]) -> dict[str, int]:
    """A run with some critical sections, in each of which some ticks come; the last ends when the clock stops, which
    has no use for the rest of them."""
    handled = sum(sections)
    turned = HERE["clock_tick"] - handled + len(sections)
    found = HERE | {"callout_process": turned}
    return found | {"critical_exit_preempt": len(sections)} if sections else found


def later(counts: dict[str, int], unused: int) -> dict[str, int]:
    """The same where the section in which the clock stops had more ticks than were wanted."""
    more = dict.fromkeys(("clock_tick", "trap_vector", "trap_handler"), unused)
    return {name: count + more.get(name, 0) for name, count in counts.items()}


@pytest.mark.parametrize("seed", range(20))
def test_ticks_in_critical_sections_are_explained(seed: int) -> None:
    random_ = random.Random(seed)
    sections = [random_.randint(1, 3) for _ in range(random_.randint(1, 5))]
    counts = later(with_ticks(sections), random_.randint(0, 2))
    assert unexplained(counts, HERE) == {}
    name = random_.choice(sorted(HERE.keys() - {"clock_tick", "callout_process"}))
    wrong = counts | {name: counts[name] + random_.choice((-1, 1))}
    assert unexplained(wrong, HERE) == {name: wrong[name]}


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("name", sorted(HERE))
def test_without_them_any_count_that_differs_is_found(name: str, by: int) -> None:
    assert unexplained(with_ticks([]), HERE) == {}
    assert name in unexplained(HERE | {name: HERE[name] + by}, HERE)


def test_what_is_nowhere_else_is_found() -> None:
    assert unexplained(HERE | {"panic": 1}, HERE) == {"panic": 1}


def test_the_wheel_is_not_turned_more_often_than_it_ticks() -> None:
    counts = with_ticks([2])
    assert unexplained(counts | {"callout_process": 21}, HERE) == {"callout_process": 21}
    assert unexplained(counts | {"callout_process": 0}, HERE) == {"callout_process": 0}
