"""Which parameters of a test the gate runs, where one image shows the rule and the others take long."""

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

import pytest

from kinst.targets.arch.registry import NAMES

Value = TypeVar("Value")
Other = TypeVar("Other")
# Whose rules know no machine: what a machine does itself is tested beside its own code, instruction by instruction.
_KNOW_NO_MACHINE: Final = (
    *("tests/agree/", "tests/dlang/", "tests/samples/"),
    *(f"tests/runtime/{room}/" for room in ("attached", "consumer", "live", "readout", "tracing")),
    *("tests/runtime/test_",),
    *(f"tests/system/test_{name}" for name in ("counted_hits", "d_counts", "exact_hits", "inline", "method_jump")),
    *(f"tests/system/test_{name}" for name in ("patched_runs", "replayed_hits", "turns")),
)
_MACHINE: Final = re.compile("|".join(NAMES))


def long_where(values: Sequence[Value], is_long: Callable[[Value], bool]) -> list[object]:
    """The values as parameters, some of them marked as long."""
    return [pytest.param(value, marks=pytest.mark.long) if is_long(value) else value for value in values]


def taking_turns(values: Sequence[Value], others: Sequence[Other]) -> list[object]:
    """All pairs as parameters: the gate runs each of the `others` with one of the values, another each time."""
    pairs = [
        (value, other, (turn - place) % len(values))
        for turn, other in enumerate(others)
        for place, value in enumerate(values)
    ]
    return [pytest.param(value, other, marks=[pytest.mark.long] * bool(later)) for value, other, later in pairs]


def long_after_first(values: Sequence[Value]) -> list[object]:
    """The values as parameters, all but the first marked as long."""
    return long_where(values, lambda value: value is not values[0])


def takes_turns(test: pytest.Item) -> bool:
    """Whether a test runs on one of its machines in the gate, and on the others in `poe test-long`."""
    is_told = test.get_closest_marker("turns") is not None
    return is_told or (test.nodeid.startswith(_KNOW_NO_MACHINE) and test.get_closest_marker("each_machine") is None)


def of_later_turns(names: Iterable[str]) -> Iterator[str]:
    """Of tests with a machine in their parameters, by their names, those on all machines but one.

    From test to test of a file it is another, so that three of them have all machines; which is the first depends on
    the file's name, so that files with a test or two have all of them, too.
    """
    files = defaultdict[str, defaultdict[str, list[str]]](lambda: defaultdict(list))
    for name in names:
        files[name.partition("::")[0]][_MACHINE.sub("", name)].append(name)
    for file, families in files.items():
        for turn, (_, members) in enumerate(sorted(families.items()), zlib.crc32(file.encode())):
            members.sort()
            del members[turn % len(members)]
            yield from members


def draws(few: int, many: int) -> list[object]:
    """How often a test draws: the gate a few times, from the same seed as `poe test-long` does many times."""
    return [few, pytest.param(many, marks=pytest.mark.long)]
