"""A program -> in what its runs differ: from method to method, and from the independent count."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Final

from tests.agree.program import COUNTED, Program
from tests.agree.running import BREAKPOINTS, JUMPS, METHODS, Outcome, ran
from tests.agree.subjects import entries_of

_ROW: Final = re.compile(r"<[^<>\n]* -?\d+>")
_CALLS: Final = re.compile(r"calls<(\S+) (\d+)>")
_SHOWN: Final = 14  # lines of a difference


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs of a program that should print the same; `between` names the methods."""

    between: tuple[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """What came of a program; it `ran` unless it was refused by the first method."""

    outcomes: tuple[tuple[str, Outcome], ...]
    differences: tuple[Difference, ...]

    @property
    def ran(self) -> bool:
        """Whether the program is one that can be run."""
        return not self.outcomes[0][1].is_refused


def compared(program: Program, methods: Sequence[str] = METHODS) -> Agreement:
    """Run a program by each method that accepts it."""
    first = BREAKPOINTS[0] if BREAKPOINTS[0] in methods or len(methods) == 1 else methods[0]
    told = ran(program, first)
    outcomes, found = [(first, told)], list[Difference]()
    found += miscounted(program, first, told)
    for method in methods:
        if method == first or (method in JUMPS and not program.is_counting):
            continue
        if told.is_refused and method != "auto":
            continue
        outcome = ran(program, method)
        outcomes.append((method, outcome))
        found += (jumped if method in JUMPS else broken)(first, told, method, outcome)
    return Agreement(tuple(outcomes), tuple(found))


def broken(first: str, told: Outcome, method: str, outcome: Outcome) -> list[Difference]:
    """In what a run with breakpoints differs from the first: nothing may."""
    if outcome.printed == told.printed:
        return []
    pairs = (
        ("output", told.output, outcome.output),
        ("errors", told.errors, outcome.errors),
        ("status", str(told.status), str(outcome.status)),
    )
    lines = [
        line
        for what, left, right in pairs
        if left != right
        for line in unified_diff(
            left.splitlines(), right.splitlines(), f"{what} {first}", f"{what} {method}", "", "", 0, ""
        )
    ]
    return [Difference((first, method), "\n".join(line[:200] for line in lines[:_SHOWN]))]


def jumped(first: str, told: Outcome, method: str, outcome: Outcome) -> list[Difference]:
    """Times differ, since such images execute more instructions, and what cannot be a jump is missing: what is counted
    under its own key is the same."""
    if outcome.status:
        return []  # says why not
    theirs = {*_ROW.findall(told.output)}
    wrong = [row for row in _ROW.findall(outcome.output) if row not in theirs]
    missing = [] if "cannot be jumps" in outcome.errors else [*(theirs - {*_ROW.findall(outcome.output)})]
    text = "\n".join([*(f"+{row}" for row in wrong), *(f"-{row}" for row in missing)][:_SHOWN])
    return [Difference((first, method), text)] if text else []


def miscounted(program: Program, method: str, told: Outcome) -> list[Difference]:
    """What is printed of calls is what a hook of raw Unicorn counted in a plain run."""
    counting = [clause for clause in program.clauses if clause.statements[:1] == (COUNTED,)]
    probed = [probe for clause in counting for probe in clause.probes]
    is_json = ("--format", "json") in program.words
    is_cut = is_json or any(word.startswith(("strsize", "buf", "aggsize")) for word in program.options())
    if not probed or told.status or is_cut or "drop" in told.errors or told.is_refused:
        return []
    known = dict(entries_of(program.image, program.cpus))
    names = [probe.split(":")[2] for probe in probed]
    expected = {(name, str(known[name])) for name in names if name in known}
    found = set(_CALLS.findall(told.output))
    found_of_known = {pair for pair in found if pair[0] in known}
    if expected == found_of_known:
        return []
    return [Difference(("count", method), f"counted {sorted(expected)}, printed {sorted(found)}")]
