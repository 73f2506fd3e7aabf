"""Clauses that are told of hits later: programs print what they print when each hit is told at once, in the order of
their hits, whatever comes between them."""

import random

import pytest

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.engine.hit_records import HitRecords
from kinst.runtime.hits.recorded import RecordedSites
from kinst.runtime.tracing.given import ClockName
from kinst.runtime.trap.trap import Firing
from tests.gated import taking_turns
from tests.system.cases import BY_NAME, KERNELS, SAMPLES, Case, shown
from tests.system.test_counted_hits import printed

each_sample = pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)
LATENCY = """
    fbt:::entry { self->ts[probefunc] = timestamp; }
    fbt:::return /self->ts[probefunc]/ {
        @[probefunc] = quantize(timestamp - self->ts[probefunc]); self->ts[probefunc] = 0;
    }"""
# Interrupts run on the stack of what they interrupt, and their variables are their own.
PROGRAMS = {
    "latency": LATENCY,
    "nested functions": """fbt:::entry { self->depth++; @d[probefunc] = max(self->depth); }
        fbt:::return /self->depth/ { self->depth--; @t = min(vtimestamp); }
        tick-500us { printa(@d); trunc(@d); }""",
    "variables of all": """fbt::k*:entry { calls[arg0 & 255]++; last = timestamp; @g = max(last); n++; }
        tick-300us { printf("%d %d\\n", n, last); n = 0; } END { printf("%d %d\\n", n, calls[16]); }""",
    "beside clauses that print": """fbt:::entry { @c[probefunc] = count(); }
        fbt::k*:entry, fbt::vfs*:entry { self->t = timestamp; seen++; }
        fbt::vfs*:return /self->t/ { printf("%s %d %d\\n", probefunc, seen, timestamp - self->t); self->t = 0; }
        fbt::k*:return /self->t/ { @[probefunc] = avg(timestamp - self->t); self->t = 0; }""",
    "two clauses at a site": """fbt:::entry { self->a = arg0; this->b = timestamp; } fbt:::entry { @["all"] = count(); }
        fbt:::entry /this->b > self->a/ { @sums[probefunc] = sum(this->b - self->a); }
        fbt:::return { @r[arg1 & 15] = count(); self->a = 0; }""",
    "if": """unsigned long last; self int n;
        fbt:::entry {
            if (arg0 > last) { @up[probefunc] = count(); } else { self->n++; @ = quantize(self->n); }
            last = arg0;
        }""",
    "room for some variables": """#pragma D option dynvarsize=1k
        fbt:::entry { self->ts[probefunc, arg0] = timestamp; some[arg0] = arg1; @ = sum(some[arg0]); }
        fbt:::return /arg1 == 0/ { self->ts["kmalloc", 64] = 0; some[64] = 0; }""",
    "more than there is room for": """self int x;
        kinst::memcpy:, kinst::memset:, kinst::k*: { n++; @[probefunc] = max(n); self->x += n; }""",
    "alike, and in order where no site is": """fbt:::entry { @[arg0 & 7] = count(); }
        fbt:::return { @r[arg1] = sum(arg0); } tick-300us { n++; }
        profile-4999 { last = timestamp; } END { printf("%d %d\\n", n, last); }""",
    "faults": """fbt::k*:entry { zero = arg0 & 1; n++; } fbt::k*:return { @ = sum(n / zero); }
        ERROR { printf("%d %d\\n", n, arg4); }""",
    "exit": f'{LATENCY} tick-700us {{ exit(3); }} END {{ printf("%d\\n", timestamp); }}',
    "exit at a site": f"{LATENCY} fbt::kmalloc:return /timestamp > 1000300000 && stackdepth/ {{ exit(0); }}",
    "few at a time": f"#pragma D option aggrate=100us\n{LATENCY}",
    "a buffer that becomes full": f"#pragma D option bufsize=4k\n{LATENCY} fbt::vfs*: {{ trace(timestamp); }}",
    "narrow variables": """int i; char c; unsigned short u; self int t; int last[int];
        fbt:::entry {
            i = arg0; c = arg0; u = arg1 * 3; self->t = arg0 << 3; last[i] = arg0; i += arg0;
            @s[i] = sum(i); @c[c] = sum(c); @u = sum(u); @t = max(self->t); @l = sum(last[i]); @g[u > 70000] = count();
        }""",
    "profile": "fbt:::entry { at = id; } profile-4999 { @[at, cpu] = count(); } fbt:::return { at = 0; }",
}


@pytest.mark.parametrize(("case", "name"), taking_turns(SAMPLES, list(PROGRAMS)), ids=shown)
def test_programs_print_the_same(case: Case, name: str) -> None:
    told = printed(case, PROGRAMS[name], "trap")
    assert printed(case, PROGRAMS[name], "auto") == told
    assert len(told[1]) > 40


LATER_SEEDS = [pytest.param(case, seed, marks=pytest.mark.long) for case in SAMPLES for seed in range(5, 12)]


@pytest.mark.parametrize(("case", "seed"), [*taking_turns(SAMPLES, range(5)), *LATER_SEEDS], ids=shown)
def test_any_programs_print_the_same(case: Case, seed: int) -> None:
    draw = random.Random(f"{case.image} {seed}")
    program, cpus = drawn(draw), draw.choice([1, 2])
    told = printed(case, program, "trap", cpus)
    assert told[0] == 0, told[2]
    assert printed(case, program, "auto", cpus) == told, program


def drawn(draw: random.Random) -> str:
    """A program: clauses that count, that can be told later and that cannot, at the same and at other functions."""
    return DECLARED + "".join(_clause(draw) for _ in range(draw.randint(3, 9)))


DECLARED = """
    unsigned long g; int h; unsigned long array[int]; self unsigned long t; self int u;
    self unsigned long own[string]; string name; this unsigned long l;
    fbt::vfs*:entry { @a[probefunc] = quantize(timestamp - self->t); }
    """
_NAMES = ("fbt:::entry", "fbt:::return", "fbt::k*:", "fbt::vfs*:", "fbt::*lookup*:entry", "kinst::kmalloc:", "fbt::m*:")
_VALUES = ("timestamp", "arg0", "arg1", "g", "h", "self->t", "self->u", "this->l", "array[3]", "cpu", "regs[1]", "7")


def _value(draw: random.Random, depth: int = 2) -> str:
    if not depth:
        return draw.choice(_VALUES)
    one, other, third = (_value(draw, depth - 1) for _ in range(3))
    match draw.randrange(6):
        case 0:
            return f"({one} {draw.choice('+-*&|^')} {other})"
        case 1:
            return f"({one} < {other} ? {third} : {other})"
        case 2:
            return f"array[(int){draw.choice(_VALUES)} & 7]"
        case _:
            return draw.choice(_VALUES)


def _action(draw: random.Random) -> str:
    value = _value(draw)
    target = draw.choice(("g", "h", "self->t", "self->u", "this->l", "array[3]", "self->own[probefunc]"))
    return draw.choice(
        (
            *(f"{target} = {value};", f"{target} += {value};", f"{target}++;", "name = probename;", "self->t = 0;"),
            *(f"@a[probefunc] = quantize({value});", f"@b[{value} & 3] = count();", f"@c = sum({value});"),
            *(f"@d[cpu] = max({value});", "@e[self->own[probefunc] & 1, probename] = avg(timestamp - self->t);"),
        )
    )


def _clause(draw: random.Random) -> str:
    predicate = f"/{_value(draw)} != {_value(draw)}/" if draw.random() < 0.5 else ""
    actions = " ".join(_action(draw) for _ in range(draw.randint(1, 4)))
    match draw.randrange(8):
        case 0:
            actions += ' printf("%s %d %d %s\\n", probefunc, g, self->t, name);'
        case 1:
            return f"tick-{draw.randint(200, 900)}us {{ {actions} printa(@a); clear(@a); }}\n"
        case _:
            pass
    return f"{draw.choice(_NAMES)} {predicate} {{ {actions} }}\n"


@each_sample
@pytest.mark.parametrize("clock", ["icount", "host"])
def test_most_hits_are_recorded(case: Case, clock: ClockName, monkeypatch: pytest.MonkeyPatch) -> None:
    """At sites that are recorded only those are told whose thread is not known yet. Time goes on."""
    times: list[int] = []
    told: list[int] = []
    take, learn = HitRecords.take_words, RecordedSites.learn

    def noted(records: HitRecords) -> list[int]:
        words = take(records)
        times.extend(words[2 :: records.width])
        return words

    def learned(sites: RecordedSites, firing: Firing) -> None:
        told.extend([firing.site] * sites.is_keyed(firing.site))
        learn(sites, firing)

    monkeypatch.setattr(HitRecords, "take_words", noted)
    monkeypatch.setattr(RecordedSites, "learn", learned)
    with open_image(case.path) as file:
        file.trace(LATENCY.replace(":::", "::k*:"), machine=Machine(board=case.machine, clock=clock)).run()
    assert len(times) > 15 * len(told) > 15
    assert times == sorted(times)
    assert times[-1] > times[0]


LINUX = """fbt::vfs_*:entry, fbt::kmem_cache_alloc*:entry, fbt::*lock*:entry { self->ts[probefunc] = timestamp; }
    fbt::vfs_*:return, fbt::kmem_cache_alloc*:return, fbt::*lock*:return /self->ts[probefunc]/ {
        @[probefunc] = quantize(timestamp - self->ts[probefunc]); self->ts[probefunc] = 0;
    }"""


@pytest.mark.long
@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.image)
def test_latencies_of_linux(case: Case) -> None:
    told = printed(case, LINUX, "trap", cpus=1)
    assert printed(case, LINUX, "auto", cpus=1) == told
    assert len(told[1].splitlines()) > 500


@pytest.mark.long  # the gate has the same program on samples: test_programs_print_the_same
def test_latencies_of_firmware() -> None:
    told = printed(BY_NAME["opensbi-1.6"], LATENCY, "trap", cpus=1)
    assert printed(BY_NAME["opensbi-1.6"], LATENCY, "auto", cpus=1) == told
    assert len(told[1]) > 1000
