"""Steps run in their order or beside each other, end when one fails, and say what they took."""

import sys
from pathlib import Path

import pytest

from tests.check.__main__ import everything, table
from tests.check.steps import Cost, Step, carried_out


def python(name: str, code: str) -> Step:
    return Step(name, (sys.executable, "-ISc", code))


def writes(name: str, folder: Path, status: int = 0) -> Step:
    return python(name, f"import pathlib, sys; pathlib.Path({str(folder / name)!r}).touch(); sys.exit({status})")


def waits_for(name: str, folder: Path) -> Step:
    """Ends when a file is there."""
    return python(name, f"import os\nwhile not os.path.exists({str(folder / name)!r}): pass")


def test_lanes_run_beside_each_other_and_their_steps_in_order(tmp_path: Path) -> None:
    first, second = waits_for("b", tmp_path), writes("a", tmp_path)
    lanes = [[first, writes("c", tmp_path)], [second, writes("b", tmp_path)]]
    costs = list(carried_out([lanes]))
    assert [cost.status for cost in costs] == [0] * 4
    names = [cost.name for cost in costs]
    assert names.index("a") < 2 and names[-1] == "c"
    assert all(cost.computing > 0 for cost in costs)


def test_nothing_begins_after_a_step_that_failed(tmp_path: Path) -> None:
    lanes = [[writes("fails", tmp_path, 3), writes("after", tmp_path)], [waits_for("never", tmp_path)]]
    costs = list(carried_out([lanes, [[writes("later", tmp_path)]]]))
    assert [(cost.name, cost.status) for cost in costs] == [("fails", 3)]
    assert [path.name for path in tmp_path.iterdir()] == ["fails"]


def test_what_steps_beside_each_other_say_is_not_mixed(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lanes = [[python(name, f"for _ in range(100): print('{name}', flush=True)")] for name in ("one", "two")]
    assert [cost.status for cost in carried_out([lanes])] == [0, 0]
    said = capfd.readouterr().out
    assert "one\n" * 100 in said and "two\n" * 100 in said


def test_a_task_of_poe_is_a_step() -> None:
    step = Step.of("docs", {"cmd": "mkdocs 'a b'", "env": {"A": "b"}}, ["more"])
    assert (step.words, step.environment) == (("mkdocs", "a b", "more"), {"A": "b"})


def test_the_gate_has_every_step_once() -> None:
    steps = [step.name for stage in everything() for lane in stage for step in lane]
    assert sorted(steps) == ["fuzz-briefly", "imports", "lint", "lint-format", "test", "types"]


def test_the_table_has_a_line_a_step_and_the_sum() -> None:
    rows = table([Cost("lint", 0, 1.0, 2.0), Cost("test", 1, 60.0, 118.5)], 61.25).splitlines()
    assert [row.split() for row in rows] == [
        ["step", "seconds", "computing"],
        ["lint", "1.0", "2.0"],
        ["test", "60.0", "118.5"],
        ["all", "61.2", "120.5"],
    ]
