"""What each test computes -> the ten dearest, which are told at the end of a run.

In seconds of the processor, of the test's own process and of all that it started and waited for: they are the same
beside others' work, and whatever the gate comes to is their sum.
"""

import heapq
import os
from collections import defaultdict
from collections.abc import Generator
from typing import Final

import pytest

TOLD: Final = 10
_NAME: Final = "computing"


def computed() -> float:
    """Seconds until now."""
    return sum(os.times()[:4])


class Dearest:
    """A plugin of one process. With xdist, workers measure and their controller tells."""

    def __init__(self) -> None:
        self._until = computed()
        self._seconds = defaultdict[str, float](float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """What is between two tests, such as looking for garbage, is neither's."""
        self._until = computed()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """After setup, call and teardown: a fixture is paid by who asks for it first."""
        now = computed()
        report = yield
        report.user_properties.append((_NAME, now - self._until))
        self._until = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add it up."""
        for name, value in report.user_properties:
            if name == _NAME and isinstance(value, float):
                self._seconds[report.nodeid] += value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Not of a few tests, which nobody waits for."""
        if len(self._seconds) > TOLD:
            terminalreporter.section(f"the {TOLD} dearest of {sum(self._seconds.values()):.0f} s of computing")
            for name, seconds in heapq.nlargest(TOLD, self._seconds.items(), key=lambda one: one[1]):
                terminalreporter.line(f"{seconds:6.1f}  {name}")
