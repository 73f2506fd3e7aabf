"""What the programs that ran had in them, by kind: what is not drawn is not tested."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Final

from tests.agree.comparing import Agreement
from tests.agree.expressions import FUNCTIONS
from tests.agree.program import Program

DELIVERIES: Final = ("counted", "recorded", "replayed", "told")
_BECAME: Final = (  # in the words of -x explain
    ("hits are recorded, and told later in their order", "replayed"),
    ("hits are recorded", "recorded"),
    ("hits are counted", "counted"),
    ("each hit is told", "told"),
)
_PROVIDERS: Final = (
    (r"^fbt:.*:entry$", "fbt entry"),
    (r"^fbt:.*:return$", "fbt return"),
    (r"^fbt:.*:$", "fbt both"),
    (r"^kinst:.*:\d+$", "kinst offset"),
    (r"^kinst:.*:(entry|return)$", "kinst inlined"),
    (r"^kinst:.*:$", "kinst whole"),
    (r"^(syscall|sched|proc|io|profile|callout_execute):", r"\1"),
    (r"^(tick|profile)-", r"\1"),
    (r"^(BEGIN|END|ERROR)$", r"\1"),
)
_SITES: Final = re.compile(r"^(fbt|kinst|callout_execute):")
_WORDS: Final = (
    *(
        "printa",
        "clear",
        "trunc",
        "normalize",
        "speculation",
        "commit",
        "discard",
        "stack",
        "ustack",
        "copyin",
        "copyinstr",
    ),
    *(
        "stringof",
        "execname",
        "pid",
        "tid",
        "timestamp",
        "vtimestamp",
        "walltimestamp",
        "self->",
        "this->",
        "arr[",
        "exit",
    ),
)
_PLAIN: Final = ("-q", "-Z", "-w")


@dataclass(slots=True)
class Coverage:
    """How many programs had each thing, by heading."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, program: Program, agreement: Agreement) -> None:
        """A program that ran."""
        for heading, names in _had(program, agreement).items():
            self.counts.setdefault(heading, Counter()).update(names)

    def merge(self, other: "Coverage") -> None:
        """What another process ran."""
        for heading, counter in other.counts.items():
            self.counts.setdefault(heading, Counter()).update(counter)

    def table(self) -> str:
        """A heading a line, with what was had and how often."""
        lines = []
        for heading, counter in self.counts.items():
            cells = ", ".join(
                f"{name} {count:,}" for name, count in sorted(counter.items(), key=lambda one: (-one[1], one[0]))
            )
            lines.append(f"{heading}: {cells}")
        return "\n".join(lines)

    def missing(self) -> list[str]:
        """Deliveries, pairs of them and aggregations that no program had."""
        pairs = [f"{one}+{other}" for one, other in combinations_with_replacement(DELIVERIES, 2)]
        wanted = {
            "delivery": DELIVERIES,
            "same probe": [pair for pair in pairs if len({*pair.split("+")}) == 2],
            "pair": [pair for pair in pairs if len({*pair.split("+")}) == 2],
            "aggregation": FUNCTIONS,
        }
        return [
            f"{heading}: {name}"
            for heading, names in wanted.items()
            for name in names
            if not self.counts.get(heading, Counter())[name]
        ]


def _had(program: Program, agreement: Agreement) -> dict[str, set[str]]:
    text = program.text()
    probes = [probe for clause in program.clauses for probe in clause.probes]
    outcomes = dict(agreement.outcomes)
    told = outcomes.get("auto", agreement.outcomes[0][1]).explained
    by_probe = _deliveries(told)
    without = (
        any(line.startswith("without a breakpoint") for line in outcomes["block"].explained)
        if "block" in outcomes
        else False
    )
    return {
        "image": {f"{program.image} cpus={program.cpus}"},
        "method": {method for method, outcome in agreement.outcomes if not outcome.is_refused},
        "delivery": {
            *().__add__(tuple(one for had in by_probe.values() for one in had)),
            *(("block",) if without else ()),
        },
        "same probe": {pair for had in by_probe.values() for pair in _pairs(had)},
        "pair": {*_pairs({one for had in by_probe.values() for one in had} | ({"block"} if without else set()))},
        "provider": {name for probe in probes for name in _provider(probe)},
        "aggregation": {name for name in FUNCTIONS if f"= {name}(" in text},
        "word": {word for word in _WORDS if re.search(rf"(?<!\w){re.escape(word)}", text)},
        "option": {
            " ".join(words) if words[0] == "-x" else words[0] for words in program.words if words[0] not in _PLAIN
        },
        "compared": {"independent count"} if "@calls" in text else set(),
    }


def _deliveries(explained: tuple[str, ...]) -> dict[str, set[str]]:
    """Of probes in the image, by description: what became of the clauses there."""
    found = dict[str, set[str]]()
    for line in explained:
        for words, name in _BECAME:
            description, is_found, _ = line.partition(f": {words}")
            if is_found and _SITES.match(description):
                found.setdefault(description, set()).add(name)
            if is_found:
                break
    return found


def _pairs(had: set[str]) -> Iterator[str]:
    order = [*DELIVERIES, "block"]
    ordered = sorted(had, key=order.index)
    yield from (f"{one}+{other}" for at, one in enumerate(ordered) for other in ordered[at + 1 :])


def _provider(probe: str) -> Iterator[str]:
    for pattern, name in _PROVIDERS:
        match = re.match(pattern, probe)
        if match:
            yield match.expand(name)
            return
