"""Which clauses only count, and that several hits at once are what they are one by one."""

from dataclasses import replace

import pytest

from kinst.runtime.clauses.compile.counting import compile_counting, why_not_counted
from tests.runtime.clauses.compile.running import Script

COUNTED = (
    "@ = count()",
    "@a[probefunc] = count(); @b[probeprov, probemod, probename] = count()",
    '@[id, epid, cpu, "text", 5, 2 + cpu] = count()',
)
OTHERS = {
    "": "it records that its probe fired",
    "trace(1)": "it does more than to aggregate",
    "x = 1; @ = count()": "it does more than to aggregate",
    "@a = sum(1)": "@a is no count()",
    "@a[arg0] = count()": "a key of @a depends on more than the probe and the CPU",
    "@a[execname] = count()": "a key of @a depends on more than the probe and the CPU",
    "@a[7 / cpu] = count()": "a key of @a depends on more than the probe and the CPU",  # which may fault
    "@a[stack()] = count()": "a key of @a depends on more than the probe and the CPU",
    "@a[x++] = count()": "a key of @a depends on more than the probe and the CPU",
}


@pytest.mark.parametrize("body", COUNTED)
def test_what_only_counts(body: str) -> None:
    assert why_not_counted(Script(f"fbt:::entry {{ {body}; }}").clauses[0]) == ""


@pytest.mark.parametrize("body", OTHERS)
def test_what_does_not(body: str) -> None:
    assert why_not_counted(Script(f"fbt:::entry {{ {body}; }}").clauses[0]) == OTHERS[body]


def test_predicates() -> None:
    """One that is the same at every hit of a probe is the probe's."""
    for predicate, why in (
        ('probefunc == "f" && cpu != 3', ""),
        ("1", ""),
        ("arg0 > 3", "its predicate depends on more than the probe and the CPU"),
        ("10 / cpu", "its predicate depends on more than the probe and the CPU"),
    ):
        assert why_not_counted(Script(f"fbt:::entry /{predicate}/ {{ @ = count(); }}").clauses[0]) == why


@pytest.mark.parametrize("predicate", ["", "/cpu == 1 || id > 2/"])
def test_hits_at_once_are_what_they_are_one_by_one(predicate: str) -> None:
    text = f"fbt:::entry {predicate} {{ @a[id, cpu] = count(); @b = count(); }}"
    single, several = Script(text), Script(text)
    count = compile_counting(
        several.clauses[0], 0, several.bench.state, several.bench.environment, several.bench.firing
    )
    for probe, cpu, hits in ((1, 0, 3), (2, 1, 5), (1, 1, 1), (3, 0, 2), (1, 0, 4)):
        count(probe, cpu, hits)
        firing = single.bench.firing
        firing.cpu, firing.enabling = cpu, replace(firing.enabling, probe=probe)
        for _ in range(hits):
            single.compiled[0](firing)

    def seen(script: Script) -> list[object]:
        return sorted(((one.cpu, one.aggregation.name, one.table) for one in script.bench.aggregations.take()), key=str)

    assert seen(several) == seen(single) != []
