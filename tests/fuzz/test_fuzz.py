"""The fuzzer finds what it looks for, and what it has found stays mended."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.fuzz.engine import Harm, limited, search
from tests.fuzz.findings import FINDINGS
from tests.fuzz.kind import Kind
from tests.fuzz.kinds import KINDS


@pytest.mark.parametrize(("kind", "what", "value"), FINDINGS, ids=[what for _, what, _ in FINDINGS])
def test_what_was_found_stays_mended(kind: str, what: str, value: Any, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    with limited(KINDS[kind].seconds):
        KINDS[kind].run(value, folder)


@pytest.mark.long  # as the fuzzer itself does in the gate, which fails if a kind has drawn nothing
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_runs_what_it_draws(name: str) -> None:
    report = search(KINDS[name], seed=5, seconds=0.5)
    assert report.inputs > 0
    assert report.found == {}


def _raise(value: int) -> None:
    if value >= 777:
        raise ValueError(f"{value} is too large")


def _wait(_value: int) -> None:
    while True:
        pass


def _sleep(_value: int) -> None:
    time.sleep(600)


def _crash(value: int) -> None:
    if value > 3:
        os.kill(os.getpid(), signal.SIGSEGV)


def _take(_value: int) -> None:
    assert len(bytes(range(256)) * (1 << 21))


def _leave(_value: int) -> None:
    Path("left").touch()


HARMS: list[tuple[Callable[[int], None], Harm, str, float]] = [
    (_raise, Harm.TRACEBACK, "777", 10),
    (_wait, Harm.HANG, "0", 0.3),
    (_sleep, Harm.HANG, "0", 0.3),
    (_take, Harm.MEMORY, "0", 10),
    (_leave, Harm.LEFTOVER, "0", 10),
]


@pytest.mark.parametrize(("harm", "kind", "smallest", "seconds"), HARMS)
def test_harm_is_found_and_made_small(harm: Callable[[int], None], kind: Harm, smallest: str, seconds: float) -> None:
    fuzzed = Kind("harm", st.integers(0, 1000), lambda value, _folder: harm(value), seconds=seconds, megabytes=400)
    found = search(fuzzed, seed=1, seconds=1).found
    assert [(one.harm, one.input) for one in found.values()] == [(kind, smallest)]


def test_a_crash_is_found_with_its_input() -> None:
    fuzzed = Kind("harm", st.integers(0, 1000), lambda value, _folder: _crash(value))
    (found,) = search(fuzzed, seed=1, seconds=1).found.values()
    assert (found.harm, found.what) == (Harm.CRASH, "signal 11")
    assert int(found.input) > 3
