"""Records that are alike are taken together: the output is what it is when they fire one by one."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands.in_process import kinst_run
from tests.images import real_image
from tests.runtime.live.drawn import Drawn, options, program
from tests.samples.machines import MACHINES

APART = "kinst.runtime.tracing.tracer.takes_together"
Outputs = Callable[[Drawn, Sequence[Any]], list[tuple[int, str, str]]]


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Outputs:
    """What a command prints of drawn records: taken together, and one by one."""

    def printed(drawn: Drawn, words: Sequence[Any]) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            patch.setattr("kinst.runtime.live.building.LiveBuilding", lambda *_given, **_more: drawn)
            done = kinst_run("--on", "qemu", *words)
        return done.returncode, done.stdout, done.stderr

    def both(drawn: Drawn, words: Sequence[Any]) -> list[tuple[int, str, str]]:
        together = printed(drawn, words)
        with monkeypatch.context() as patch:
            patch.setattr(APART, lambda _clauses, _providers: False)
            return [together, printed(drawn, words)]

    return both


def check(outputs: Outputs, seed: int, records: int, image: Path, function: str) -> None:
    draw = random.Random(seed)
    text, chosen = program(draw, function), options(draw)
    together, apart = outputs(Drawn(seed, records), [*chosen, "-n", text, image])
    assert together == apart, (chosen, text)


@pytest.mark.parametrize("machine", MACHINES)
def test_together_is_as_one_by_one(outputs: Outputs, machine: str) -> None:
    for seed in range(8):
        check(outputs, seed, 128, Path(MACHINES[machine].image), "vfs_get")


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
def test_so_it_is_for_many_programs(outputs: Outputs, machine: str) -> None:
    for seed in range(100, 250):
        check(outputs, seed, 512, Path(MACHINES[machine].image), "vfs_get")


@pytest.mark.long
def test_so_it_is_for_linux(outputs: Outputs) -> None:
    """Whose tasks are recorded."""
    for seed in range(20):
        check(outputs, seed, 512, real_image("linux-amd64"), "vfs_read")


def test_a_fault_is_reported_for_each_hit_in_its_turn(outputs: Outputs) -> None:
    """Hits of the same clause before and after it count, and those of others."""
    text = "fbt::vfs_get:entry { @ = sum(100 / (arg0 & 1)); } fbt::vfs_*:entry { @n[probefunc] = count(); }"
    text += "ERROR { @errors[arg4] = count(); }"
    together, apart = outputs(Drawn(1, 256), ["-n", text, MACHINES["amd64"].image])
    assert together == apart
    assert "divide-by-zero" in together[2]
