"""Which clauses only count, what they look at, and that several hits at once are what they are one by one."""

from dataclasses import replace

import pytest

from kinst.runtime.clauses.compile.counting import compile_counting, reads_of, why_not_counted
from kinst.runtime.dlang.program import Clause
from kinst.runtime.hits.actions import Reads
from tests.runtime.clauses.compile.running import Script

COUNTED = (
    "@ = count()",
    "@a[probefunc] = count(); @b[probeprov, probemod, probename] = count()",
    '@[id, epid, cpu, "text", 5, 2 + cpu] = count()',
    "@a = sum(1)",
)
RECORDED = {
    "@[arg0] = count()": Reads(frozenset({0})),
    "@[arg1 / 1024 % 8, arg9 > 3 ? 1 : -1] = count()": Reads(frozenset({1, 9})),
    "@ = quantize(arg2, arg1)": Reads(frozenset({1, 2})),
    "@[(unsigned char)args[1]] = avg(-arg0 & 0xff)": Reads(frozenset({0, 1})),
    "@a = lquantize((int)regs[3], 0, 100, 5); @b = max(arg0 << 3)": Reads(frozenset({0}), frozenset({3})),
    "@[probefunc] = stddev(arg1); @b = count()": Reads(frozenset({1})),
}
MORE = "depends on more than the probe, the CPU, arguments and registers"
OTHERS = {
    "": "it records that its probe fired",
    "trace(1)": "it does more than to aggregate",
    "x = 1; @ = count()": "it does more than to aggregate",
    "@a[execname] = count()": f"a key of @a {MORE}",
    "@a[7 / cpu] = count()": f"a key of @a {MORE}",  # which may fault
    "@a[arg0 % arg1] = count()": f"a key of @a {MORE}",
    "@a[arg0 / -1] = count()": f"a key of @a {MORE}",
    "@a[stack()] = count()": f"a key of @a {MORE}",
    "@a[x++] = count()": f"a key of @a {MORE}",
    "@a[uregs[0]] = count()": f"a key of @a {MORE}",
    "@a[stringof(arg0)] = count()": f"a key of @a {MORE}",
    "@a = sum(*(int *)arg0)": f"what is aggregated in @a {MORE}",
    "@a = quantize(arg0, timestamp)": f"what is aggregated in @a {MORE}",
    "@a = max(x = 1)": f"what is aggregated in @a {MORE}",
}


def clause(body: str, predicate: str = "") -> Clause:
    return Script(f"fbt:::entry {predicate} {{ {body}; }}").clauses[0]


@pytest.mark.parametrize("body", COUNTED)
def test_what_only_counts(body: str) -> None:
    assert (why_not_counted(clause(body)), reads_of(clause(body))) == ("", Reads())


@pytest.mark.parametrize("body", RECORDED)
def test_what_looks_at_registers(body: str) -> None:
    assert (why_not_counted(clause(body)), reads_of(clause(body))) == ("", RECORDED[body])


@pytest.mark.parametrize("body", OTHERS)
def test_what_does_not(body: str) -> None:
    assert why_not_counted(clause(body)) == OTHERS[body]


def test_predicates() -> None:
    """One that is the same at every hit of a probe is the probe's."""
    for predicate, why in (
        ('probefunc == "f" && cpu != 3', ""),
        ("1", ""),
        ("arg0 > 3 && !arg1", ""),
        ("10 / cpu", f"its predicate {MORE}"),
        ("pid == 1", f"its predicate {MORE}"),
    ):
        assert why_not_counted(clause("@ = count()", f"/{predicate}/")) == why
    assert reads_of(clause("@ = count()", "/arg0 > 3 && !arg1/")) == Reads(frozenset({0, 1}))


FUNCTIONS = ("count()", *(f"{name}(arg0)" for name in ("sum", "min", "max", "avg", "stddev", "quantize")))
QUANTIZED = ("lquantize(arg0, -5, 100, 7, 3)", "llquantize(arg0, 10, 0, 6, 20, 2)", "quantize(arg0, -arg1)")


@pytest.mark.parametrize("function", [*FUNCTIONS, *QUANTIZED])
@pytest.mark.parametrize("predicate", ["", "/cpu == 1 || (id > 2 && arg0 != 7)/"])
def test_hits_at_once_are_what_they_are_one_by_one(predicate: str, function: str) -> None:
    text = f"fbt:::entry {predicate} {{ @a[id, cpu, arg1] = {function}; @b = {function}; }}"
    single, several = Script(text), Script(text)
    count = compile_counting(several.clauses[0], 0, several.bench.state, several.bench.environment, 0)
    values = (7, 3, 2**64 - 5, 2**63 - 1, 0)
    for probe, cpu, hits in ((1, 0, 3), (2, 1, 5), (1, 1, 1), (3, 0, 2), (1, 0, 4)):
        for value in values:
            firing = single.bench.firing
            enabling = replace(firing.enabling, probe=probe, argument=lambda firing, index: firing.regs[index])
            firing.cpu, firing.enabling, regs = cpu, enabling, [value, value & 3]
            count(enabling, cpu, hits, regs)
            firing.frame.regs = regs
            for _ in range(hits):
                single.compiled[0](firing)

    def seen(script: Script) -> list[object]:
        return sorted(((one.cpu, one.aggregation.name, one.table) for one in script.bench.aggregations.take()), key=str)

    assert seen(several) == seen(single) != []
