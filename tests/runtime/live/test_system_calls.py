"""`syscall` probes of recorded hits: which call a task leaves, and what is not known when records were lost."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.live.system_calls import SystemCalls
from kinst.runtime.providers.host import ImageHost
from kinst.runtime.providers.provider import Probes
from kinst.runtime.tracing.standalone.constants import ConstantMemory
from kinst.runtime.tracing.standalone.record_memory import RecordMemory
from kinst.runtime.trap.trap import Firing
from kinst.targets.c_types import NoImageTypes
from kinst.targets.image import open_image
from tests.rewriter.programs import small
from tests.runtime.providers.hosts import firing_of, ids

CALLS = ("read", "write", "close")
OUT = "fbt::syscall_exit_to_user_mode:entry"
FUNCTIONS = dict.fromkeys(("start", *(f"__x64_sys_{call}" for call in CALLS), "syscall_exit_to_user_mode"), "nop; ret")


class Point:
    """A place in the kernel: a row of the manifest's probes."""

    rows = (0,)

    def arm(self) -> None:
        """All are."""

    def disarm(self) -> None:
        """They stay."""


class Kernel:
    """An `ImageHost` whose points a test reaches, with records that it makes up."""

    def __init__(self, folder: Path) -> None:
        self.image = open_image(small(functions=FUNCTIONS).write(folder))
        self.types, self.arch = NoImageTypes(), self.image.facts
        self.memory = RecordMemory(ConstantMemory(self.image, Scratch(0)))
        self.places: dict[str, Callable[[Firing], None]] = {}

    def plant(self, description: str, called: Callable[[Firing], None], *, may_lack: bool = False) -> Point:
        self.places[description] = called
        return Point()

    def reach(self, description: str, task: int) -> None:
        self.memory.show(task, {}, 0, b"")
        self.places[description](firing_of(*range(32)))


class Traced:
    """The returns of all calls."""

    def __init__(self, folder: Path) -> None:
        self.kernel = Kernel(folder)
        self.calls = SystemCalls(cast("ImageHost", self.kernel), ["syscall:::return"])
        self.fired: list[str] = []
        created: list[tuple[str, str]] = []

        class Created:
            def create(self, _module: str, function: str, name: str) -> int:
                created.append((function, name))
                return len(created) - 1

        self.calls.provide(cast("Probes", Created()), None)
        returns = [number for number, (_, name) in enumerate(created) if name == "return"]
        self.calls.enable(ids(*returns), lambda firing: self.fired.append(created[firing.enabling.probe][0]))

    def enter(self, call: str, task: int) -> None:
        self.kernel.reach(f"fbt::__x64_sys_{call}:entry", task)

    def leave(self, task: int) -> None:
        self.kernel.reach(OUT, task)


@pytest.mark.parametrize("seed", range(20))
def test_returns_are_of_the_calls_that_are_known(seed: int, tmp_path: Path) -> None:
    """Readings of records, before or among which some were lost: a call is known if none were since its entry."""
    draw, traced = random.Random(seed), Traced(tmp_path)
    inside: dict[int, tuple[str, int]] = {}  # by task: its call, and the stretch without losses that it began in
    expected: list[str] = []
    entries = stretch = lost = 0
    for _ in range(60):
        is_behind, has_gaps = draw.random() < 0.1, draw.random() < 0.1
        stretch += is_behind or has_gaps
        traced.calls.begin(is_behind=is_behind, has_gaps=has_gaps)
        for _ in range(draw.randrange(12)):
            task = draw.randrange(1, 6)
            if task in inside:
                call, began = inside.pop(task)
                traced.leave(task)
                if began == stretch and not has_gaps:
                    expected.append(call)
            else:
                inside[task] = draw.choice(CALLS), stretch
                traced.enter(inside[task][0], task)
                entries += 1
        stretch += has_gaps
        lost += traced.calls.take_lost()
    traced.calls.begin(is_behind=True, has_gaps=False)  # what is under way is lost
    assert traced.fired == expected
    assert lost + traced.calls.take_lost() == entries - len(expected)


def test_what_leaves_without_having_entered_was_in_no_call(tmp_path: Path) -> None:
    """A new task; and whatever is recorded before there are tasks."""
    traced = Traced(tmp_path)
    traced.leave(1)
    traced.enter("read", 0)
    traced.leave(0)
    assert (traced.fired, traced.calls.take_lost()) == ([], 0)
    traced.enter("write", 2)
    traced.leave(3)
    traced.leave(2)
    assert traced.fired == ["write"]
