"""Records that are alike are taken together: the output is what it is when they fire one by one."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands.in_process import kinst_run
from tests.images import real_image
from tests.runtime.live.drawn import Drawn, mixed, options, program
from tests.samples.machines import MACHINES

APART = "kinst.runtime.tracing.tracer.takes_together"
Outputs = Callable[[Drawn, Sequence[Any]], list[tuple[int, str, str]]]


Printed = Callable[[Drawn, Sequence[Any]], tuple[int, str, str]]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Printed:
    """What a command prints of drawn records."""

    def run(drawn: Drawn, words: Sequence[Any]) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            patch.setattr("kinst.runtime.live.building.LiveBuilding", lambda *_given, **_more: drawn)
            done = kinst_run("--on", "qemu", *words)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def outputs(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> Outputs:
    """What a command prints of drawn records: taken together, and one by one."""

    def both(drawn: Drawn, words: Sequence[Any]) -> list[tuple[int, str, str]]:
        together = printed(drawn, words)
        with monkeypatch.context() as patch:
            patch.setattr(APART, lambda _clauses, _providers: False)
            return [together, printed(drawn, words)]

    return both


def check_mix(printed: Printed, seed: int, records: int, image: Path, function: str) -> int:
    """The output is the same if each site keeps what is read there, and nothing else. Returns how many different things
    sites kept."""
    draw = random.Random(seed)
    text, chosen = mixed(draw, function), options(draw)
    drawn, union = Drawn(seed, records, notes_time=False, is_mix=True), Drawn(seed, records, notes_time=False)
    assert printed(drawn, [*chosen, "-n", text, image]) == printed(union, [*chosen, "-n", text, image]), (chosen, text)
    return drawn.forms


def check(outputs: Outputs, seed: int, records: int, image: Path, function: str) -> None:
    draw = random.Random(seed)
    text, chosen = program(draw, function), options(draw)
    together, apart = outputs(Drawn(seed, records), [*chosen, "-n", text, image])
    assert together == apart, (chosen, text)


@pytest.mark.parametrize("machine", MACHINES)
def test_together_is_as_one_by_one(outputs: Outputs, machine: str) -> None:
    for seed in range(4):
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


@pytest.mark.parametrize("machine", MACHINES)
def test_what_each_site_keeps_is_enough(printed: Printed, machine: str) -> None:
    forms = [check_mix(printed, seed, 128, Path(MACHINES[machine].image), "vfs_get") for seed in range(8)]
    assert max(forms) > 2


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
def test_so_it_is_in_many_mixes(printed: Printed, machine: str) -> None:
    for seed in range(100, 300):
        check_mix(printed, seed, 512, Path(MACHINES[machine].image), "vfs_get")


@pytest.mark.long
def test_so_it_is_in_mixes_on_linux(printed: Printed) -> None:
    for seed in range(20):
        check_mix(printed, seed, 512, real_image("linux-amd64"), "vfs_read")
