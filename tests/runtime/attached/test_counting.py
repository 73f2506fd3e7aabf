"""attach(): hits that no Python sees come to what hits come to that each are dispatched."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import kinst.runtime
from kinst.runtime import Options
from kinst.runtime.attached.attach import Attached
from kinst.runtime.hits.counted import CountedSites
from kinst.targets.arch.registry import NAMES
from tests.runtime.attached.programs import Bare, Linux, bare, built, moved, static

Run = Linux | Bare
RUNS: Final[dict[str, Callable[[str], Run]]] = {
    "static": lambda machine: Linux(static(machine)),
    "moved": lambda machine: Linux(moved(machine)),
    "bare": lambda machine: Bare(bare(machine), machine),
}
THREADED: Final = ("amd64", "arm64")  # Qiling has no threads for riscv64
FUNCTIONS: Final = ("depth", "total", "say", "each", "start", "_start", "step")
PLACES: Final = ("fbt::{}:entry", "fbt::{}:return", "kinst::{}:", "kinst::{}:{}")
ACTIONS: Final = (
    "@c{} = count();",
    "@p{}[probefunc, probename] = count();",
    "@s{} = sum(arg0 & 0xff);",
    "@m{}[probename] = max(uregs[3] & 0xffff);",
    "@k{}[arg0 & 3] = count();",
    "n{}++; @l{} = max(n{});",
    'printf("%s", probename);',
    "@u{}[tid] = count();",
)
PREDICATES: Final = ("", "", "", "/arg0 & 1/")


def drawn(source: random.Random) -> str:
    """A few clauses."""
    clauses = []
    for number in range(source.randrange(1, 6)):
        place = source.choice(PLACES).format(source.choice(FUNCTIONS), 4 * source.randrange(8))
        action = source.choice(ACTIONS).replace("{}", str(number))
        clauses.append(f"{place} {source.choice(PREDICATES)} {{ {action} }}")
    return "\n".join(clauses)


def image_of(run: Run) -> Path | None:
    """A bare image's file has to be named: Qiling was given bytes."""
    return run.image.path if isinstance(run, Bare) else None


def outcome(run: Run, program: str, method: Any, *, is_rerun: bool) -> tuple[object, ...]:
    """What the guest does and what the program sees."""
    options = Options(method=method, d={"zdefs": True})
    before = run.code() if isinstance(run, Bare) else None
    with kinst.runtime.attach(run.ql, program, options=options, image=image_of(run)) as tracing:
        early = None if isinstance(run, Bare) else run.ql.save(cpu_context=True)
        results = [run.run()]
        if is_rerun and early is not None:
            run.ql.restore(early)
        if is_rerun:
            results.append(run.run())
    assert before is None or run.code() == before
    records = [(record.probe, record.values, record.text) for record in tracing.take()]
    return results, records, seen(tracing)


def seen(tracing: Attached) -> dict[str, dict[Any, Any]]:
    return {name: dict(table.items()) for name, table in tracing.aggregations.items()}


def agree(make: Callable[[], Run], seed: int, *, may_rerun: bool = True) -> None:
    source = random.Random(seed)
    program, is_rerun = drawn(source), may_rerun and source.random() < 0.5
    method = source.choice([None, "emulate"])
    plain = outcome(make(), program, "trap", is_rerun=is_rerun)
    assert outcome(make(), program, method, is_rerun=is_rerun) == plain, (seed, method, program)


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("machine", NAMES)
def test_drawn_programs_agree(machine: str, kind: str) -> None:
    for seed in range(3):
        agree(lambda: RUNS[kind](machine), seed)


@pytest.mark.parametrize("machine", THREADED)
def test_drawn_programs_agree_about_threads(machine: str) -> None:
    program = built(machine, "threads.c", "-static", "-no-pie")
    agree(lambda: Linux(program, multithread=True), 1, may_rerun=False)


@pytest.mark.long
@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("machine", NAMES)
def test_many_drawn_programs_agree(machine: str, kind: str) -> None:
    for seed in range(100, 180):
        agree(lambda: RUNS[kind](machine), seed)


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("machine", NAMES)
def test_no_python_runs_for_a_hit_that_counts(machine: str, kind: str) -> None:
    """But for the first of each site, which finds out what the site is."""
    run = RUNS[kind](machine)
    with kinst.runtime.attach(run.ql, "fbt::say:entry { @ = count(); }", image=image_of(run)) as tracing:
        machine_ = tracing._building._machine
        assert machine_ is not None
        counted = machine_.trap.counted
        assert isinstance(counted, CountedSites)
        counted.fold = lambda: None  # type: ignore[method-assign]  # leave it to us: a slow run folds on its way
        run.run()
        assert [hits for _, _, hits in counted._counters.take()] == [3]
