"""The gate has each test that takes turns once, and all machines."""

from collections import Counter

import pytest

from kinst.targets.arch.registry import NAMES
from tests.gated import of_later_turns

FAMILIES = [f"tests/test_{file}.py::test_{number}[*]" for file in range(30) for number in range(4)]
TESTS = [family.replace("*", machine) for family in FAMILIES for machine in NAMES]


def test_each_has_one_turn_and_all_machines_have_many() -> None:
    first = {*TESTS} - {*of_later_turns(TESTS)}
    assert len(first) == len(FAMILIES)
    assert {family.replace("*", machine) for family in FAMILIES for machine in NAMES} >= first
    turns = Counter((name.split("::")[0], machine) for name in first for machine in NAMES if machine in name)
    assert len(turns) == 30 * len(NAMES)
    lone = [name for name in TESTS if "test_0[" in name]
    firsts = Counter(machine for name in {*lone} - {*of_later_turns(lone)} for machine in NAMES if machine in name)
    assert min(firsts[machine] for machine in NAMES) > 3


def test_whose_turn_it_is_does_not_depend_on_the_order() -> None:
    assert {*of_later_turns(reversed(TESTS))} == {*of_later_turns(TESTS)}


@pytest.mark.parametrize("name", ["test_a[riscv64]", "test_a[image]", "test_a[linux-amd64-]"])
def test_who_has_no_other_machine_has_its_turn(name: str) -> None:
    assert [*of_later_turns([name])] == []


@pytest.mark.turns
@pytest.mark.parametrize("machine", NAMES)
def test_the_mark_makes_the_others_long(machine: str, request: pytest.FixtureRequest) -> None:
    own = request.node.nodeid  # the only family of this file with that mark
    family = [own.replace(machine, name) for name in NAMES]
    assert (own in of_later_turns(family)) is (request.node.get_closest_marker("long") is not None)
