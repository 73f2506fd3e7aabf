"""The gate has each test that takes turns once, and all machines."""

from collections import Counter

import pytest

from kinst.targets.arch.registry import NAMES
from tests.gated import of_later_turns

FAMILIES = [f"tests/test_a.py::test_{number}[*-{rest}]" for number in range(50) for rest in ("", "read")]
TESTS = [family.replace("*", machine) for family in FAMILIES for machine in NAMES]


def test_each_has_one_turn_and_all_machines_have_many() -> None:
    first = {*TESTS} - {*of_later_turns(TESTS)}
    assert len(first) == len(FAMILIES)
    assert {family.replace("*", machine) for family in FAMILIES for machine in NAMES} >= first
    turns = Counter(machine for name in first for machine in NAMES if machine in name)
    assert min(turns[machine] for machine in NAMES) > len(FAMILIES) / 5


def test_whose_turn_it_is_depends_on_nothing_else() -> None:
    later = {*of_later_turns(TESTS)}
    assert {*of_later_turns(reversed(TESTS))} == later
    assert {*of_later_turns(TESTS[:30])} == later & {*TESTS[:30]}


@pytest.mark.parametrize("name", ["test_a[riscv64]", "test_a[image]", "test_a[linux-amd64-]"])
def test_who_has_no_other_machine_has_its_turn(name: str) -> None:
    assert [*of_later_turns([name])] == []


@pytest.mark.turns
@pytest.mark.parametrize("machine", NAMES)
def test_the_mark_makes_the_others_long(machine: str, request: pytest.FixtureRequest) -> None:
    own = request.node.nodeid
    family = [own.replace(machine, name) for name in NAMES]
    assert (own in of_later_turns(family)) is (request.node.get_closest_marker("long") is not None)
