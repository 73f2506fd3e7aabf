"""Guests: the sample kernels and real firmware, patched in the file, patched in memory, relocated, ended."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.write import write_image
from kinst.runtime import Machine, api
from kinst.runtime.machine.configuration import End
from kinst.runtime.trace import Trace
from kinst.runtime.tracing.hits import Hit
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import KinstError, UsageError
from kinst.targets.image import open_image
from kinst.targets.probe import parse_probe_name
from tests.gated import long_after_first
from tests.images import real_image
from tests.runtime.tracing.recorder import Recorder

SAMPLES = Path(__file__).parents[3] / "samples"


def sample(arch: str) -> Path:
    return SAMPLES / f"kernel-{arch}.elf"


def traced(image: Path, *descriptions: str, recorder: Recorder | None = None, **machine: Any) -> tuple[Trace, Recorder]:
    """Not run yet."""
    recorder = recorder or Recorder()
    with api.open_image(image) as file:
        actions = dict.fromkeys(descriptions, recorder.fired)
        return file.trace(actions=actions, machine=Machine(clock="icount", **machine)), recorder


def patch(image: Path, out: Path, *descriptions: str) -> Path:
    opened = open_source(Source(image))
    _, plan = plan_probes(opened, [parse_probe_name(text) for text in descriptions])
    write_image(plan, out)
    return out


@pytest.mark.parametrize("arch", NAMES)
def test_a_patched_file_and_an_image_patched_in_memory_fire_alike(arch: str, tmp_path: Path) -> None:
    descriptions = ("fbt::fibonacci:", "kinst::rpc_dispatch:", "fbt::rpc_*:return")
    patched = patch(sample(arch), tmp_path / "patched.elf", *descriptions)
    again, in_file = traced(patched, *descriptions)
    in_memory, memory = traced(sample(arch), *descriptions)
    by_itself, _ = traced(patched)
    plain, _ = traced(sample(arch))
    assert {trace.run(seconds=5) for trace in (again, in_memory, by_itself, plain)} == {End.POWER_OFF}
    assert in_file.names == memory.names == Counter(str(record.probe) for record in by_itself.take())
    assert memory.counts.total() > 100
    assert in_file.arguments == memory.arguments
    assert again.console == in_memory.console == by_itself.console == plain.console
    assert not plain.take()


@pytest.mark.parametrize("arch", NAMES)
def test_a_patched_file_runs_with_some_of_its_probes(arch: str, tmp_path: Path) -> None:
    patched = patch(sample(arch), tmp_path / "patched.elf", "fbt:::entry")
    trace, recorder = traced(patched, "fbt::kmalloc:entry")
    trace.run(seconds=5)
    assert set(recorder.names) == {f"fbt:{trace.guest.loaded.image.module}:kmalloc:entry"}


@pytest.mark.parametrize("arch", NAMES)
@pytest.mark.each_machine
def test_entry_and_return_see_arguments_results_and_callers(arch: str) -> None:
    seen: list[tuple[str, int, int]] = []
    callers = []

    def action(hit: Hit) -> None:
        seen.append((hit.probe.name, hit.argument(0), hit.argument(1)))
        if hit.probe.name == "entry":
            callers.append(hit.caller)

    with api.open_image(sample(arch)) as image:
        trace = image.trace(actions={"fbt::fibonacci:": action}, machine=Machine(clock="icount"))
    trace.run(seconds=5)
    expected = [0, 1]
    while len(expected) < 40:
        expected.append(expected[-1] + expected[-2])
    stack: list[int] = []
    for name, first, second in seen:
        if name == "entry":
            stack.append(first & 0xFFFFFFFF)
            continue
        assert first > 0  # the offset of the return in the function
        assert expected[stack.pop()] == second & 0xFFFFFFFF
    assert not stack
    symbols = trace.guest.loaded.image.symbols
    start = symbols.address_of("fibonacci")
    assert start is not None
    assert len(set(callers)) >= 2  # itself and someone else
    assert sum(start <= address < start + 0x200 for address in callers) >= len(callers) // 2


@pytest.mark.parametrize("cpus", [2, 4])
@pytest.mark.parametrize("arch", NAMES)
def test_every_cpu_fires(arch: str, cpus: int) -> None:
    by_cpu: Counter[int] = Counter()
    with api.open_image(sample(arch)) as image:
        trace = image.trace(
            actions={"fbt:::entry": lambda hit: by_cpu.update([hit.cpu])}, machine=Machine(cpus=cpus, clock="icount")
        )
    assert trace.run(seconds=5) is End.POWER_OFF
    assert set(by_cpu) == set(range(cpus))
    assert re.search(rf"cpu: {cpus} found".encode(), trace.console)


@pytest.mark.parametrize("image", long_after_first(["u-boot-riscv64", "u-boot-arm64"]))
def test_an_image_that_moves_itself_fires_before_and_after(image: str) -> None:
    sites: set[int] = set()
    with api.open_image(real_image(image)) as file:
        trace = file.trace(actions={"fbt:::entry": lambda hit: sites.add(hit.address)}, machine=Machine(clock="icount"))
        unpatched = file.trace(machine=Machine(clock="icount"))
    assert trace.run(until="Loading Environment", seconds=60) is End.UNTIL
    start, end = trace.guest.loaded.segments[0][0], trace.guest.loaded.end
    before = {site for site in sites if start <= site < end}
    assert before
    assert len(sites - before) > 100
    assert unpatched.run(until="Loading Environment", seconds=60) is End.UNTIL
    assert unpatched.console == trace.console


@pytest.mark.long  # the gate runs it where it is moved to, and counts: test_exact_hits
def test_position_independent_firmware_is_moved_to_ram() -> None:
    trace, recorder = traced(real_image("opensbi-1.6"), "fbt:::", recorder=Recorder(keeps_arguments=False))
    assert trace.run(until="HART MEDELEG", seconds=5) is End.UNTIL
    assert trace.guest.loaded.bias == 0x8000_0000
    assert trace.console.endswith(b"0x000000000000b109\r\n")
    assert sum(recorder.counts.values()) > 50_000


def test_until_is_looked_for_in_lines_that_are_not_complete_yet() -> None:
    trace, _ = traced(sample("riscv64"))
    assert trace.run(until=r"^kernel: boo", seconds=5) is End.UNTIL
    assert trace.console == b"kernel: booting\r\n"


def test_begin_and_end_fire_once() -> None:
    trace, recorder = traced(sample("riscv64"), "BEGIN", "END")
    trace.run(seconds=5)
    assert dict(recorder.names) == {"dtrace:::BEGIN": 1, "dtrace:::END": 1}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"descriptions": ("fbt::no_such_function:entry",)}, KinstError, "no_such_function"),
        ({"descriptions": ("ERRORS",)}, KinstError, "ERRORS"),
        ({"board": "pc-amd64"}, UsageError, "is for riscv64"),
        ({"board": "vax"}, UsageError, "no such machine"),
        ({"memory": 0x2000}, KinstError, "try --memory 1m or more"),
        ({"memory": 0x10_0001}, KinstError, "multiples"),
        ({"cpus": 0}, UsageError, "1 to 8"),
    ],
)
def test_what_cannot_be_run_is_said(changes: dict[str, Any], error: type[KinstError], message: str) -> None:
    with pytest.raises(error, match=message):
        traced(sample("riscv64"), *changes.pop("descriptions", ()), **changes)


def test_what_is_no_expression_is_said() -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        traced(sample("riscv64"))[0].run(until="(")


def test_the_guest_reads_what_was_armed_but_fetches_look_pristine_to_the_machine() -> None:
    guest = traced(sample("riscv64"), "kinst::fibonacci:")[0].guest
    image = open_image(sample("riscv64"))
    start = image.symbols.address_of("fibonacci")
    assert start is not None
    size = 24
    guest.system.board.start(guest.loaded)
    assert guest.system.memory.read(start, size) != image.read(start, size)
    assert guest.system.current.fetch(start, size) == image.read(start, size)
    assert guest.system.current.fetch(start + 1, 7) == image.read(start + 1, 7)
