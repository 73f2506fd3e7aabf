"""Which clauses are told of hits later, what they look at, and that they do then what they would have done at once."""

import pytest

from kinst.runtime.clauses.compile.replaying import compile_replay, reads_of_replayed, why_not_replayed
from kinst.runtime.dlang.program import Clause
from kinst.runtime.hits.actions import Reads
from kinst.runtime.hits.replayed import RecordedFiring
from tests.runtime.clauses.compile.running import Script

DECLARED = (
    "self uint64_t ts; self uint64_t in; uint64_t x; uint64_t y; uint64_t calls[int64_t]; uint64_t names[string];"
)
LATER = {
    "self->ts = timestamp": Reads(has_time=True, has_thread=True),
    "@[probefunc] = quantize(timestamp - self->ts); self->ts = 0": Reads(has_time=True, has_thread=True),
    "self->depth++; @ = max(self->depth)": Reads(has_thread=True),
    "pairs[arg0, probefunc]++": Reads(frozenset({0})),
    "calls[arg0] += 5; x = calls[arg1] / 3": Reads(frozenset({0, 1})),
    "this->x = vtimestamp; @[this->x > 3 ? 1 : 0] = count()": Reads(has_time=True),
    "last = (char)(x = arg0), y = regs[3]": Reads(frozenset({0}), frozenset({3})),
    'self->what = probefunc; @[self->what == "f0"] = count()': Reads(has_thread=True),
    'name = "x"; other = name': Reads(),
    "x = arg0 && self->in || !y": Reads(frozenset({0}), has_thread=True),
    "self->x[cpu, 3] = arg1": Reads(frozenset({1}), has_thread=True),
}
MORE = "reads more than is recorded of a hit, or may fail"
AT_ONCE = {
    "": "it records that its probe fired",
    "x = 1; trace(x)": "it does more than to assign variables and to aggregate",
    'self->ts = timestamp; printf("x")': "it does more than to assign variables and to aggregate",
    "exit(1)": "it does more than to assign variables and to aggregate",
    "x = walltimestamp": f"what it evaluates {MORE}",
    "x = 7 / arg0": f"what it evaluates {MORE}",
    "x %= arg0": f"what it evaluates {MORE}",
    "x = *(int *)arg0": f"what it evaluates {MORE}",
    "s = stringof(arg0)": f"what it evaluates {MORE}",
    "x = pid": f"what it evaluates {MORE}",
    "x = rand()": f"what it evaluates {MORE}",
    "x = names[execname]": f"what it evaluates {MORE}",
    "self->s = probefunc; @[self->s] = count()": f"a key of @ {MORE}",  # which may be NULL
    "@[stack()] = count()": f"a key of @ {MORE}",
    "@a[x] = sum(timestamp / x)": f"what is aggregated in @a {MORE}",
}


def clause(body: str, predicate: str = "") -> Clause:
    return Script(f"{DECLARED} fbt:::entry {predicate} {{ {body}; }}").clauses[0]


@pytest.mark.parametrize("body", LATER)
def test_what_is_told_later(body: str) -> None:
    assert (why_not_replayed(clause(body)), reads_of_replayed(clause(body))) == ("", LATER[body])


@pytest.mark.parametrize("body", AT_ONCE)
def test_what_is_told_at_once(body: str) -> None:
    assert why_not_replayed(clause(body)) == AT_ONCE[body]


@pytest.mark.parametrize(
    ("predicate", "is_later"), [("/self->ts > arg0/", True), ("/x++ < 5/", True), ("/ppid/", False)]
)
def test_predicates(predicate: str, *, is_later: bool) -> None:
    why = why_not_replayed(clause("x = 1", predicate))
    assert why == ("" if is_later else f"its predicate {MORE}")


def test_later_a_hit_has_its_own_time_and_thread() -> None:
    """What other clauses see, who are told at once."""
    body = "self->ts = timestamp; self->n += regs[2]; calls[cpu]++;"
    script = Script(f"self uint64_t n; fbt:::entry {{ {body} }}")
    bench = script.bench
    replay = compile_replay(script.clauses[0], 0, bench.state, bench.environment, 1000)
    firing = RecordedFiring([0] * len(bench.firing.regs))
    for key, time, cpu in ((5, 10, 0), (6, 20, 1), (5, 30, 1)):
        firing.key, firing.time, firing.cpu = key, time, cpu
        firing.frame.regs[2] = time + 1
        replay(firing)

    variables = bench.state.variables
    found = {variable.name: dynamic.cells for variable, dynamic in variables._dynamic.items()}
    assert found == {"ts": {5: 1030, 6: 1020}, "n": {5: 42, 6: 21}, "calls": {0: 1, 1: 2}}
