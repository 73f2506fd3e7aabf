"""What the programs that ran had in them, by kind: what is not drawn is not tested."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from tests.agree.comparing import Agreement
from tests.agree.expressions import FUNCTIONS
from tests.agree.program import Program

DELIVERIES: Final = ("count", "record", "replay", "dispatch", "block")
_BECAME: Final = (  # in the words of -x explain
    ("hits are counted where blocks", "block"),
    ("hits are counted", "count"),
    ("hits are batched, once", "record"),
    ("hits are batched, one by one", "replay"),
    ("hits are dispatched", "dispatch"),
)
_PROBE: Final = re.compile(r"((?:fbt|kinst|callout_execute|syscall|sched|proc|io):\S*): ")
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
        pairs = [f"{one}+{other}" for one, other in combinations(DELIVERIES, 2)]
        of_clauses = [pair for pair in pairs if "block" not in pair]
        wanted = {
            "delivery of a site": DELIVERIES,
            "deliveries of sites": pairs,
            "clauses of a probe": of_clauses,
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
    blocks = outcomes["block"].explained if "block" in outcomes else ()
    by_probe, sites = _by_probe(told), {*_of_sites(told), *(name for name in _of_sites(blocks) if name == "block")}
    return {
        "image": {f"{program.image} cpus={program.cpus}"},
        "method": {method for method, outcome in agreement.outcomes if not outcome.is_refused},
        "delivery of a site": sites,
        "deliveries of sites": {*_pairs(sites)},
        "clauses of a probe": {pair for had in by_probe.values() for pair in _pairs(had)},
        "clauses": {*_pairs({one for had in by_probe.values() for one in had})},
        "provider": {name for probe in probes for name in _provider(probe)},
        "aggregation": {name for name in FUNCTIONS if f"= {name}(" in text},
        "word": {word for word in _WORDS if re.search(rf"(?<!\w){re.escape(word)}", text)},
        "option": {
            " ".join(words) if words[0] == "-x" else words[0] for words in program.words if words[0] not in _PLAIN
        },
        "compared": {"independent count"} if "@calls" in text else set(),
    }


def _by_probe(explained: tuple[str, ...]) -> dict[str, set[str]]:
    """What could become of the clauses of each description."""
    found = dict[str, set[str]]()
    for line in explained:
        probe = _PROBE.match(line)
        if probe:
            found.setdefault(probe[1], set()).update(_became(line[probe.end() :]))
    return found


def _of_sites(explained: tuple[str, ...]) -> Iterator[str]:
    """What was decided of sites."""
    for line in explained:
        at, is_site, became = line.partition(" sites ")
        if is_site and at.startswith("at "):
            yield from _became(became)


def _became(text: str) -> Iterator[str]:
    yield from [name for words, name in _BECAME if text.startswith(words)][:1]


def _pairs(had: set[str]) -> Iterator[str]:
    ordered = sorted(had, key=DELIVERIES.index)
    yield from (f"{one}+{other}" for at, one in enumerate(ordered) for other in ordered[at + 1 :])


def _provider(probe: str) -> Iterator[str]:
    for pattern, name in _PROVIDERS:
        match = re.match(pattern, probe)
        if match:
            yield match.expand(name)
            return
