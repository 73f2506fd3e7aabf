"""Looks in the middle of turns change nothing of the guest, and come where a turn is long."""

from pathlib import Path

import pytest

from kinst.runtime import Machine, api
from kinst.runtime.top import interludes
from kinst.runtime.top.interludes import Interludes
from kinst.runtime.tracing.hits import Hit

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-riscv64.elf"


def run(monkeypatch: pytest.MonkeyPatch, interval: float | None) -> tuple[list[tuple[int, int]], int]:
    """The probes that fired, with their times, and how often somebody looked."""
    fired, looks = list[tuple[int, int]](), list[int]()
    with api.open_image(SAMPLE) as file:
        actions = {"fbt:::entry": lambda hit: note(hit)}
        with file.trace(actions=actions, machine=Machine(clock="icount")) as trace:
            system = trace.guest.system

            def note(hit: Hit) -> None:
                fired.append((hit.identifier, system.clock.now()))

            if interval is not None:
                monkeypatch.setattr(interludes, "_INTERVAL", interval)
                between = Interludes(system, lambda: looks.append(system.clock.now()))
                between.start()
            trace.run(seconds=5)
            if interval is not None:
                between.close()
    return fired, len(looks)


def test_the_guest_sees_the_same_times(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, _ = run(monkeypatch, None)
    watched, looks = run(monkeypatch, 0.001)
    assert len(plain) > 1000
    assert watched == plain
    assert looks > 3
