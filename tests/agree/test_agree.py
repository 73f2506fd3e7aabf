"""Programs print the same whatever way their hits take; and what compares them sees what it is to see."""

from dataclasses import replace

import pytest

from tests.agree.comparing import broken, compared, jumped, miscounted
from tests.agree.coverage import Coverage
from tests.agree.drawing import drawn
from tests.agree.engines import ENGINES, compared_engines, run_by
from tests.agree.findings import FINDINGS
from tests.agree.places import LINUX, NAMES
from tests.agree.program import COUNTED, Clause, Program
from tests.agree.running import Outcome
from tests.agree.shrinking import shrunk
from tests.agree.steady import drawn_steady
from tests.agree.subjects import entries_of, subject
from tests.runtime.live.qemus import needs
from tests.samples.machines import MACHINES
from tests.system.cases import SAMPLES

SEED = 23
EACH = 1  # `poe agree` draws thousands
IMAGES = tuple(case.image for case in SAMPLES)


@pytest.mark.parametrize("image", IMAGES)
def test_drawn_programs_print_the_same_by_each_method(image: str) -> None:
    coverage = Coverage()
    for number in range(EACH):
        program = drawn(SEED, number, subject(image))
        agreement = compared(program)
        assert agreement.differences == ()
        assert agreement.ran
        coverage.add(program, agreement)
    assert len(coverage.counts["method"]) >= 3


@pytest.mark.parametrize("machine", MACHINES)
def test_drawn_programs_print_the_same_by_both_engines(machine: str) -> None:
    needs(MACHINES[machine].qemu[0])
    found = [compared_engines(drawn_steady(SEED, number, subject(f"kernel-{machine}"))) for number in range(EACH)]
    assert [one.differences for one in found] == [()] * EACH
    assert any(one.ran for one in found)


def test_an_engine_that_prints_something_else_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    needs(MACHINES["riscv64"].qemu[0])
    program = Program("kernel-riscv64", 1, (), (Clause(("fbt::vfs_get:entry",), "", ("@ = sum(arg1)",)),))
    assert compared_engines(program).differences == ()
    other = replace(program, clauses=(Clause(("fbt::vfs_get:entry",), "", ("@ = sum(arg1 + 1)",)),))
    monkeypatch.setattr(
        "tests.agree.engines.run_by", lambda engine, one: run_by(engine, other if engine == "qemu" else one)
    )
    (found,) = compared_engines(program).differences
    assert found.between == ENGINES


@pytest.mark.parametrize("name", FINDINGS)
def test_what_was_found_stays_mended(name: str) -> None:
    agreement = compared(FINDINGS[name])
    assert agreement.ran
    assert agreement.differences == ()


@pytest.mark.long
@pytest.mark.parametrize("image", NAMES)
def test_more_programs_print_the_same(image: str) -> None:
    methods = ("trap", "auto", "emulate")
    for number in range(2 if image in LINUX else 30):
        agreement = compared(drawn(SEED + 1, number, subject(image)), methods)
        assert agreement.differences == ()


def test_a_seed_draws_the_same_programs_again_and_each_of_its_own() -> None:
    found = [drawn(SEED, number, subject(IMAGES[0])) for number in range(30)]
    assert [drawn(SEED, number, subject(IMAGES[0])) for number in range(30)] == found
    assert len(set(found)) == 30


def test_runs_that_print_something_else_differ() -> None:
    told = Outcome(0, "a\nb\n", "")
    assert broken("trap", told, "auto", Outcome(0, "a\nb\n", "")) == []
    for other in (Outcome(0, "a\nc\n", ""), Outcome(0, "a\nb\n", "kinst-run: x\n"), Outcome(3, "a\nb\n", "")):
        (found,) = broken("trap", told, "auto", other)
        assert found.between == ("trap", "auto")


def test_jumps_may_leave_out_only_what_they_refused() -> None:
    told = Outcome(0, "c0<f entry 3>\nc0<g entry 1>\n", "")
    assert jumped("trap", told, "jump", Outcome(0, "c0<f entry 3>\nc0<g entry 1>\n", "")) == []
    assert jumped("trap", told, "jump", Outcome(0, "c0<f entry 3>\n", "1 of 2 sites cannot be jumps: why\n")) == []
    assert len(jumped("trap", told, "jump", Outcome(0, "c0<f entry 3>\n", ""))) == 1
    assert len(jumped("trap", told, "jump", Outcome(0, "c0<f entry 2>\nc0<g entry 1>\n", ""))) == 1


def test_calls_are_compared_with_what_the_plain_image_executed() -> None:
    name, count = entries_of(IMAGES[0], 1)[0]
    program = Program(IMAGES[0], 1, (), (Clause((f"fbt::{name}:entry",), "", (COUNTED,)),))
    assert miscounted(program, "trap", Outcome(0, f"calls<{name} {count}>\n", "")) == []
    assert len(miscounted(program, "trap", Outcome(0, f"calls<{name} {count - 1}>\n", ""))) == 1
    assert len(miscounted(program, "trap", Outcome(0, "", ""))) == 1


def test_a_program_that_fails_is_made_small() -> None:
    clauses = tuple(Clause((f"fbt::f{at}:entry", "fbt::g:entry"), "arg0", ("g0++", f"trace({at})")) for at in range(6))
    program = Program(IMAGES[0], 2, (("-q",), ("-x", "strsize=8")), clauses)
    small = shrunk(program, lambda one: "trace(4)" in one.text() and "strsize=8" in one.options())
    assert (small.cpus, small.words) == (1, (("-x", "strsize=8"),))
    assert [clause.text() for clause in small.clauses] == ["fbt::g:entry { trace(4); }"]
