"""Hits that the engine counts and records by itself, or tells in the shortest way: programs print what they print when
each hit comes to the trap path, the guest notices nothing, and counts are right whenever somebody looks."""

from collections import Counter

import pytest
from click.testing import CliRunner

from kinst.runtime import Machine, Options
from kinst.runtime.api import open_image
from kinst.runtime.cli import run as kinst_run
from kinst.runtime.hits.counted import CountedSites
from kinst.runtime.tracing.given import MethodName
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.instruction import Flow
from tests.gated import taking_turns
from tests.system.cases import BY_NAME, KERNELS, SAMPLES, Case, shown
from tests.system.plain import drawn_probes, plain_run
from tests.system.runs import Run, let_go, run
from tests.system.state import differences

each_sample = pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)
KEYS = "fbt::: { @[probefunc, probename, cpu, id] = count(); @all = count(); }"
ARGUMENTS = """
    fbt:::entry /arg0 > 3 && arg1 != 0/ { @a[probefunc] = quantize(arg1); @b[arg2 / 8] = avg(arg0); }
    fbt:::return { @c[probefunc, arg1] = count(); @d[arg0] = stddev(arg1); @e = min(arg1); @f = quantize(arg0, 3); }"""
PROGRAMS = {
    "keys": KEYS,
    "predicates": 'fbt::: /probename == "entry"/ { @[probefunc] = count(); } fbt::: /cpu == 1/ { @second = count(); }',
    "beside clauses that look": f"{KEYS} fbt::k*:entry /vtimestamp/ {{ @a[probefunc] = sum(arg0); }}",
    "arguments": f"{ARGUMENTS} fbt::k*:entry {{ @g[arg9, cpu] = lquantize(arg0, 0, 4096, 64); }}",
    "registers": """kinst::k*: { @a[regs[2], probename] = max(regs[1]); } fbt:::entry { @b[probefunc] = count(); }
        tick-300us { printa(@a); trunc(@a); }""",
    "read and changed on the way": f"""{KEYS}
        tick-200us {{ printa("%s %s %d %d %@d\\n", @); clear(@all); }}
        tick-500us {{ normalize(@all, 2); printa(@all); trunc(@, 5); }}""",
    "exit": f"{KEYS} tick-700us {{ exit(3); }}",
    "exit at a site": f"{KEYS} fbt::kmalloc:return /timestamp > 300000/ {{ exit(0); }}",
    "few at a time": f"#pragma D option aggrate=100us\n{KEYS}",
    "each hit told": "fbt:::, kinst::k*:, kinst::vfs*: { trace(timestamp); trace(arg0); trace(arg1); trace(caller); }",
    "latencies": """fbt:::entry { self->ts = timestamp; self->depth++; }
        fbt:::return /self->ts/ { @[probefunc] = quantize(timestamp - self->ts); @d[self->depth] = count(); }""",
    "faults": "fbt:::entry { trace(*(int *)arg0); } ERROR { @[arg4, arg5, stackdepth] = count(); }",
    "probes that come and go": """BEGIN { n = 0; } fbt::k*:entry { n++; trace(n); @s[stack(4)] = count(); }
        kinst::kmalloc: /n % 7 == 0/ { trace(regs[0]); speculation(); } kinst::kfree: /n == 100/ { exit(4); }""",
    "room for some": f"#pragma D option aggsize=2k\n{KEYS}",
}


def printed(case: Case, program: str, method: str, cpus: int = 2) -> tuple[int, str, str]:
    words = ["-q", "--clock", "icount", "--cpus", str(cpus), "--method", method, "-n", program, str(case.path)]
    words += [] if case.until is None else ["--until", case.until]
    result = CliRunner().invoke(kinst_run, words, prog_name="kinst-run")
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(("case", "name"), taking_turns(SAMPLES, list(PROGRAMS)), ids=shown)
def test_programs_print_the_same(case: Case, name: str) -> None:
    told = printed(case, PROGRAMS[name], "trap")
    assert printed(case, PROGRAMS[name], "auto") == told
    assert printed(case, PROGRAMS[name], "block") == told
    assert len(told[1]) > 100


def counted(case: Case, program: str, cpus: int) -> Run:
    """A run under a program whose hits are counted."""
    with open_image(case.path) as file:
        trace = file.trace(program, machine=Machine(board=case.machine, cpus=cpus, clock="icount"))
    told = trace.guest.system.trap
    told.fired = trace.guest.system.current.fired  # to be looked at in the end
    done = Run(trace, let_go(trace, case.until, case.asks), Counter())
    counts = told.counted
    assert isinstance(counts, CountedSites)
    # Most sites were counted: a site of which there is a copy, and most calls, are not.
    assert len(counts._cells) > len(told.hits) // 4
    return done


@each_sample
def test_a_hit_that_the_engine_tells_has_all_registers_of_the_site(case: Case) -> None:
    def hits(method: MethodName | None) -> list[tuple[int, ...]]:
        found = list[tuple[int, ...]]()
        names = arch_by_name(case.image.removeprefix("kernel-")).registers
        run(
            case,
            ("fbt:::", "kinst::k*:"),
            cpus=2,
            method=method,
            action=lambda hit: found.append((hit.address, hit.cpu, hit.time, *map(hit.register, names))),
        )
        return found

    told = hits("trap")
    assert hits(None) == told
    assert len(told) > 10_000


@each_sample
@pytest.mark.parametrize("cpus", [pytest.param(1, marks=pytest.mark.long), 2])
def test_nothing_tells_the_run_from_the_plain_one_if_each_hit_is_dispatched(case: Case, cpus: int) -> None:
    found = run(case, ("fbt:::", "kinst:::"), cpus=cpus)
    found.guest.system.trap.fired = found.guest.system.current.fired
    assert differences(plain_run(case, cpus), found) == []
    counts = found.guest.system.trap.counted
    assert isinstance(counts, CountedSites)
    assert len(counts._dispatched) > len(found.guest.system.trap.hits) // 4


@each_sample
@pytest.mark.parametrize("cpus", [pytest.param(1, marks=pytest.mark.long), 2])
def test_nothing_tells_the_run_from_the_plain_one(case: Case, cpus: int) -> None:
    assert differences(plain_run(case, cpus), counted(case, "fbt:::, kinst::: { @ = count(); }", cpus)) == []


def test_direct_calls_of_amd64_are_counted() -> None:
    """What a call pushes is written into its trampoline, so the engine need not ask Python for it."""
    case = next(case for case in SAMPLES if "amd64" in case.image)
    done = counted(case, "kinst::kmain: { @ = count(); }", 1)
    sites, counts = done.sites.manifest.sites, done.guest.system.trap.counted
    calls = sites["address"][sites["flow"] == Flow.CALL].tolist()
    assert isinstance(counts, CountedSites)
    assert sum(address in counts._cells for address in calls) > 5


@pytest.mark.long  # the gate has samples just above, and counts of these images by two methods below
@pytest.mark.parametrize("name", ["opensbi-1.6", "gnumach", "u-boot-arm64"])
def test_nothing_tells_the_run_of_a_real_image_from_the_plain_one(name: str) -> None:
    """U-Boot copies itself to the top of RAM, breakpoints and all."""
    case = BY_NAME[name]
    program = ", ".join(("fbt:::", *drawn_probes(case))) + " { @ = count(); }"
    assert differences(plain_run(case), counted(case, program, 1)) == []


LINUX = {
    "counted": "fbt:::entry { @[probefunc] = count(); @all = count(); }",
    "recorded": "fbt:::entry /arg1 > 7/ { @[probefunc] = quantize(arg1); @all[arg2 & 15] = avg(arg0); }",
}


@pytest.mark.long
@pytest.mark.parametrize("program", LINUX.values(), ids=LINUX)
@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.image)
def test_all_functions_of_linux(case: Case, program: str) -> None:
    """It writes over its own code while it boots, and its first functions run at physical addresses."""
    told = printed(case, program, "trap", cpus=1)
    assert printed(case, program, "auto", cpus=1) == told
    assert len(told[1].splitlines()) > 500


@pytest.mark.long  # the gate has the same program on samples: test_programs_print_the_same
def test_programs_on_firmware_print_the_same() -> None:
    told = printed(BY_NAME["opensbi-1.6"], ARGUMENTS, "trap", cpus=1)
    assert printed(BY_NAME["opensbi-1.6"], ARGUMENTS, "auto", cpus=1) == told
    assert len(told[1]) > 1000


@pytest.mark.parametrize("name", ["opensbi-1.6", "gnumach"])
def test_counts_without_breakpoints_are_those_with_them(name: str) -> None:
    counted = printed(BY_NAME[name], "fbt:::entry { @[probefunc] = count(); }", "auto", cpus=1)
    assert printed(BY_NAME[name], "fbt:::entry { @[probefunc] = count(); }", "block", cpus=1) == counted
    assert len(counted[1]) > 100


def test_method_trap_tells_each_hit() -> None:
    with open_image(SAMPLES[0].path) as file:
        trace = file.trace(
            "fbt:::entry { @ = count(); }", machine=Machine(clock="icount"), options=Options(method="trap")
        )
    assert trace.guest.system.trap.counted is None
    assert run(SAMPLES[0], ("fbt:::entry",), method="trap").hits.total() > 100
