"""Clauses that change the CPU do to a guest what other instructions in its code do, to the last byte of its memory."""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.runtime import End, Machine, Options
from kinst.runtime.api import open_image
from kinst.runtime.cli import run
from kinst.runtime.tracing.hits import Hit
from kinst.targets.errors import GuestError, KinstError
from tests.gated import long_after_first
from tests.system.cases import SAMPLES, Case, shown
from tests.system.interventions import Changed, changed, returning
from tests.system.runs import Run
from tests.system.state import differences

LIMIT = 0.03  # seconds of the machine's time: a changed kernel may never end
PATIENCE = 10.0  # of the host: one that takes faults or hits forever is given up
REPLACED = ("net_report", "vfs_report")  # which print a line each, and return nothing
each_sample = pytest.mark.parametrize("case", SAMPLES, ids=shown)


class Plain:
    """A run whose code was changed by hand."""

    distances = (0,)

    def __init__(self, run: Run) -> None:
        self.run = run


def ran(path: Path, cpus: int, *programs: str, actions: Mapping[str, Callable[[Hit], object]] | None = None) -> Run:
    with open_image(path) as file:
        trace = file.trace(
            *programs,
            actions=actions,
            machine=Machine(cpus=cpus, clock="icount"),
            options=Options(d={"destructive": True}),
        )
    try:
        end = trace.run(seconds=LIMIT, wall_seconds=PATIENCE)
    except GuestError:  # a changed kernel may do anything: what it did is compared
        end = End.STOPPED
    return Run(trace, end, Counter())


def functions_of(case: Case) -> list[str]:
    """Functions that the kernel calls."""
    with (
        open_image(case.path) as file,
        file.trace("fbt:::entry { @[probefunc] = count(); }", machine=Machine(clock="icount")) as trace,
    ):
        trace.run(seconds=LIMIT)
        return sorted(map(str, trace.aggregation()))


def found_differences(made: Changed, by_clauses: Run, cpus: int) -> list[str]:
    """What differs from a run of the image that was changed by hand, but for its code."""
    by_hand = ran(made.image, cpus)
    if End.WALL_TIMEOUT in (by_hand.end, by_clauses.end):
        pytest.skip("the changed kernel takes faults or hits forever")
    for address, code in made.before:
        place = by_hand.guest.loaded.physical(address)
        assert place is not None
        by_hand.guest.system.memory.write(place, code)
    return differences(Plain(by_hand), by_clauses)


def check(case: Case, seed: int, cpus: int, folder: Path) -> None:
    machine, draw = case.image.rpartition("-")[2], random.Random(f"{seed} {case.image}")
    made = changed(machine, case.path, functions_of(case), draw, folder)
    assert found_differences(made, ran(case.path, cpus, made.program), cpus) == [], made.program


@pytest.mark.parametrize("case", long_after_first(SAMPLES), ids=shown)
def test_written_registers_and_skipped_instructions_are_as_in_code(case: Case, tmp_path: Path) -> None:
    check(case, 0, 2, tmp_path)


@pytest.mark.long
@each_sample
@pytest.mark.parametrize("seed", range(1, 41))
def test_drawn_interventions_are_as_in_code(case: Case, seed: int, tmp_path: Path) -> None:
    check(case, seed, 1 + seed % 2, tmp_path)


@pytest.mark.long
@each_sample
@pytest.mark.parametrize("cpus", [1, 2])
def test_a_function_that_python_replaces_returns_as_by_a_return(case: Case, cpus: int, tmp_path: Path) -> None:
    """Without a result, one instruction stands for the call, and so the clocks agree as well."""
    made = returning(case.image.rpartition("-")[2], case.path, REPLACED, tmp_path)
    replaced = {f"replace fbt::{name}": lambda _hit: None for name in REPLACED}
    assert found_differences(made, ran(case.path, cpus, actions=replaced), cpus) == []


@pytest.mark.long
@each_sample
def test_an_overridden_function_has_the_result_that_a_stub_has(case: Case, tmp_path: Path) -> None:
    """The stub takes an instruction more, so that only what the kernel computes is the same."""
    stubs = {"amd64": "mov eax, 42; ret", "arm64": "mov w0, #42; ret", "riscv64": "li a0, 42; ret"}
    with open_image(case.path) as file:
        patch = f"vfs_report = {stubs[case.image.rpartition('-')[2]]}"
        result = CliRunner().invoke(rewrite, [str(file.source.path), "--patch", patch, "-o", str(tmp_path / "p.elf")])
    assert result.exit_code == 0, result.output
    clauses = "fbt::vfs_report:entry { override(42); } fbt::vfs_report:return { @returns = count(); }"
    overridden = ran(case.path, 1, clauses)
    assert overridden.console == ran(tmp_path / "p.elf", 1).console
    assert overridden.console != ran(case.path, 1).console
    assert not overridden.trace.aggregation("returns")  # none of its instructions ran


KERNEL = SAMPLES[2]
PERMITTED = {"destructive": True}


def traced(
    action: Callable[[Hit], object], description: str, permitted: Mapping[str, bool] = PERMITTED
) -> Counter[int]:
    """What fibonacci() returned, where an action intervenes."""
    returned: Counter[int] = Counter()
    actions = {description: action, "fbt::fibonacci:return": lambda hit: returned.update([hit.argument(1)])}
    options = Options(d=permitted)
    with (
        open_image(KERNEL.path) as file,
        file.trace(actions=actions, machine=Machine(clock="icount"), options=options) as trace,
    ):
        trace.run(seconds=LIMIT)
    return returned


def writes_an_argument(hit: Hit) -> None:
    hit.regs["a0"] = 1
    assert hit.regs["a0"] == hit.argument(0) == 1


def test_python_writes_registers() -> None:
    assert traced(writes_an_argument, "fbt::fibonacci:entry") == {1: 1}


def test_a_replacement_may_let_the_function_run() -> None:
    seen: list[int] = []

    def replaced(hit: Hit) -> object:
        seen.append(hit.argument(0))
        return 5 if hit.argument(0) < 12 else hit.original()

    # The compiler has made a loop of one of the two calls.
    assert traced(replaced, "replace fbt::fibonacci") == {30: 1}
    assert seen == [12, 11, 9, 7, 5, 3, 1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("action", "description", "permitted", "says"),
    [
        (lambda hit: hit.override(1), "fbt::fibonacci:entry", {}, "permits it"),
        (lambda hit: hit.override(1), "fbt::total:return", PERMITTED, "override() needs fbt's entry"),
        (lambda hit: hit.override(1), "BEGIN", PERMITTED, "override() needs fbt's entry"),
        (lambda hit: hit.skip(), "fbt::fibonacci:entry", PERMITTED, "skip() needs a probe of kinst"),
        (lambda hit: hit.write_register("zero", 1), "fbt::fibonacci:entry", PERMITTED, "zero cannot be written"),
        (lambda hit: hit.write_register("pc", 1), "fbt::fibonacci:entry", PERMITTED, "no instruction begins there"),
        (lambda hit: hit.write_register("x1", 1), "fbt::fibonacci:entry", PERMITTED, "no such register"),
        (lambda hit: hit.write_register("a0", 1), "tick-1ms", PERMITTED, "regs[] can be written at probes of fbt"),
        (lambda _hit: "five", "replace fbt::fibonacci", PERMITTED, "an integer, None or hit.original()"),
        (lambda _hit: 5, "replace fbt::fibonacci", {}, "permits it"),
        (lambda _hit: 5, "replace fbt::total:return", PERMITTED, "override() needs fbt's entry"),
    ],
)
def test_python_is_told_what_is_impossible(
    action: Callable[[Hit], object], description: str, permitted: Mapping[str, bool], says: str
) -> None:
    with pytest.raises(KinstError, match=re.escape(says)):
        traced(action, description, permitted)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-n", "fbt::kmalloc:entry { regs[R_A0] = 5; }"], "regs[] needs -w"),
        (["-n", "fbt::kmalloc:entry { override(0); }"], "override() needs -w"),
        (["-wn", "fbt::kmalloc: { override(0); }"], "kmalloc:return: override() needs fbt's entry of a function"),
        (["-wn", "kinst::kmalloc:2 { override(0); }"], "kmalloc:2: override() needs fbt's entry of a function"),
        (["-wn", "fbt::kmalloc:entry { skip(); }"], "skip() needs a probe of kinst"),
        (["-wn", "tick-1s { regs[R_A0]++; }"], "tick-1s: regs[] can be written at probes of fbt, kinst and syscall"),
        (["-wn", "fbt::kmalloc:return { regs[R_PC] = 4; }"], "the PC can be written at probes of kinst and at entries"),
        (["-wn", "fbt::kmalloc:entry { regs[R_ZERO] = 5; }"], "regs[0]: zero cannot be written"),
        (["-wn", "fbt::kmalloc:entry { regs[99] = 5; }"], "regs[99]: riscv64 has no such register"),
        (["--method", "jump", "-wn", "fbt::kmalloc:entry { skip(); }"], "--method jump only counts"),
    ],
)
def test_programs_are_told_what_is_impossible(words: list[str], says: str) -> None:
    result = CliRunner().invoke(run, ["-q", *words, str(KERNEL.path)], prog_name="kinst-run")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.stderr
    assert says in result.stderr
