"""Returns by tail calls, on three machines: what fires, in which order and with which value, in a program that leaves
functions in every way; the order is that of an instrumented build, which has no tail calls."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.hits import Hit
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import MachineError
from tests.runtime.tracing.recorder import Recorder

SOURCE: Final = Path(__file__).with_name("tail_calls.c")
COMPILERS: Final = {"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}
OPTIONS: Final = ["-O2", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-fno-pie", "-fno-stack-protector"]
LAYOUT: Final = ["-Wl,-e,main", "-Wl,-Ttext=0x100000", "-Wl,--build-id=none"]
INSTRUMENTED: Final = ("-finstrument-functions", "-DINSTRUMENTED")
SUM: Final = 6 + 0 + 0 + 6 + (0 + 6 + 4 + 10) + (5 + 7 + 9) + 2  # what main returns

OTHERS: Final = {"jumps", "exchange"}  # one leaves by a computed jump that is no tail call, the other is no C

Event = tuple[str, int | str]  # a function and the value that it returned, or why nobody knows


def compiled(folder: Path, machine: str, *options: str) -> Path:
    compiler = COMPILERS[machine]
    if shutil.which(compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler}"
        pytest.skip(f"no {compiler}")
    image = folder / "image.elf"
    subprocess.run([compiler, *OPTIONS, *LAYOUT, *options, str(SOURCE), "-o", str(image), "-lgcc"], check=True)
    return image


class Returns:
    """Keeps (function, value) of each return, and where kinst probes fired."""

    def __init__(self) -> None:
        self.events: list[Event | int] = []

    def fired(self, hit: Hit) -> None:
        if hit.probe.provider == "kinst":
            self.events.append(hit.address)
        else:
            self.events.append((hit.probe.function, self.value(hit)))

    def value(self, hit: Hit) -> int | str:
        try:
            return hit.argument(1)
        except MachineError as error:
            return str(error).partition(": arg1: ")[2]


def run(image: Path, *descriptions: str, call: str = "main()", result: int = SUM) -> tuple[Guest, list[Event | int]]:
    returns = Returns()
    with open_image(image) as file:
        trace = file.trace(
            actions=dict.fromkeys(descriptions, returns.fired), call=call, machine=Machine(clock="icount")
        )
    assert trace.run(seconds=10) is End.RETURNED
    assert trace.result == result
    return trace.guest, returns.events


def pending(guest: Guest) -> Sequence[int]:
    assert guest.code is not None
    return guest.code.pending_returns.sites()


def returned(events: Sequence[Event | int]) -> list[Event]:
    return [event for event in events if not isinstance(event, int)]


@pytest.fixture(params=NAMES)
def machine(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def test_the_order_is_that_of_an_instrumented_build(machine: str, tmp_path: Path) -> None:
    _, events = run(compiled(tmp_path, machine), "fbt:::return")
    exits = [name for name in exits_of(compiled(tmp_path, machine, *INSTRUMENTED)) if name not in OTHERS]
    assert [name for name, _ in returned(events) if name not in OTHERS] == exits
    assert len(exits) > 50


def exits_of(image: Path) -> list[str]:
    """The functions that an instrumented build says it leaves."""
    recorder = Recorder()
    with open_image(image) as file:
        trace = file.trace(actions={"fbt::__cyg_profile_func_exit:entry": recorder.fired}, call="main()")
    assert trace.run(seconds=10) is End.RETURNED
    table = trace.guest.loaded.image.symbols
    names = dict(zip(table.address.tolist(), table.names(np.arange(len(table.address))), strict=True))
    return [names[arguments[0]] for _, arguments in recorder.arguments]


def test_values_are_what_the_callee_returned(machine: str, tmp_path: Path) -> None:
    _, events = run(compiled(tmp_path, machine), "fbt:::return")
    found = returned(events)
    assert found[:3] == [("leaf", 6), ("middle", 6), ("outer", 6)]
    assert [value for name, value in found if name == "nested"] == [0, 2, 4, 6]
    assert [value for name, value in found if name == "chosen"] == [0, 6, 4, 10]
    assert [value for name, value in found if name == "left"] == [5, 7, 9]
    assert [value for name, value in found if name == "works"] == [100, 101]


def test_a_function_that_is_called_by_itself_returns_too(machine: str, tmp_path: Path) -> None:
    _, events = run(compiled(tmp_path, machine), "fbt:::return", call="outer(5)", result=14)
    assert events == [("leaf", 14), ("middle", 14), ("outer", 14)]


def test_recursion_on_one_frame_returns_as_often_as_it_was_entered(machine: str, tmp_path: Path) -> None:
    _, events = run(compiled(tmp_path, machine), "fbt::even:return", "fbt::odd:return")
    assert returned(events) == [*[("odd", 0), ("even", 0)] * 5, ("odd", 0)]


def test_frames_that_are_left_by_longjmp_are_forgotten(machine: str, tmp_path: Path) -> None:
    """The last one is still waited for: nothing was called there again."""
    guest, events = run(compiled(tmp_path, machine), "fbt::left:return")
    assert returned(events) == [("left", 5), ("left", 7), ("left", 9)]
    assert len(pending(guest)) == 1


def test_it_is_the_same_with_breakpoints_at_the_calls_and_behind_them(machine: str, tmp_path: Path) -> None:
    image = compiled(tmp_path, machine)
    alone, plain = run(image, "fbt:::return")
    guest, events = run(image, "fbt:::return", "kinst:::")
    assert returned(events) == returned(plain)
    assert pending(guest) == pending(alone)


def test_a_return_fires_before_the_probe_of_the_instruction_that_it_comes_to(machine: str, tmp_path: Path) -> None:
    guest, events = run(compiled(tmp_path, machine), "fbt::works:return", "kinst::thread:")
    start = guest.loaded.image.symbols.address_of("thread")
    at = events.index(("works", 100))
    before, after = events[at - 1], events[at + 1]
    assert isinstance(before, int) and isinstance(after, int)
    assert start is not None
    assert start < before < after < start + 64


UNKNOWN: Final = "a tail call, and where it returns to is not known: "


def test_where_it_returns_to_is_not_known(tmp_path: Path) -> None:
    """A longjmp: on top of the stack is a variable of the function that it leads to."""
    _, events = run(compiled(tmp_path, "amd64"), "fbt::jumps:return")
    unknown = [value for _, value in returned(events) if isinstance(value, str)]
    assert len(unknown) == 3
    assert all(re.fullmatch(UNKNOWN + "no call returns to 0x[0-9a-f]+", text) for text in unknown)


def test_a_frame_that_is_not_known(tmp_path: Path) -> None:
    """-msave-restore: functions jump to an epilogue that restores their registers, the link register among them."""
    image = compiled(tmp_path, "riscv64", "-Os", "-msave-restore")
    _, events = run(image, "fbt::nested:return")
    assert len(events) == 4
    assert all(re.match(UNKNOWN + "the link register holds", str(value)) for _, value in returned(events))
