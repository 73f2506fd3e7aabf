"""What scripts printed, and what the guest said of itself in the same run."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_KERNELS_OWN: Final = re.compile(r"^\[ *\d+\.\d+\].*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that both know: how far apart they may be, and why they may at all."""

    what: str
    script: int
    guest: int
    bound: int = 0
    why: str = ""

    @property
    def agrees(self) -> bool:
        """Whether it is something, and the same."""
        return self.guest > 0 and abs(self.script - self.guest) <= self.bound


@dataclass(frozen=True, slots=True)
class Boot:
    """A boot: what the script that watched it printed, and the console."""

    text: str
    console: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the workload: what the scripts printed; what the guest did without them: console, and its own trace."""

    text: str
    console: str
    trace: str

    def between(self, reading: str, row: str) -> Counter[str]:
        """What an aggregation gained between two readings, by key."""
        first, last = self._bounds(reading)
        after, before = (_rows(text, row) for text in (last, first))
        return Counter({key: after[key] - before[key] for key in after if after[key] != before[key]})

    def distribution(self, reading: str, heading: str) -> Counter[int]:
        """What a distribution gained between two readings, by value."""
        before, after = (histogram(text, heading) for text in self._bounds(reading))
        return Counter({value: count - before.get(value, 0) for value, count in after.items()})

    def window(self) -> str:
        """What was printed while the guest traced itself."""
        _, begin, *_, end = [found.span() for found in re.finditer(r"^<tracing\n(.*\n)*?>$", self.text, re.MULTILINE)]
        return self.text[begin[1] : end[0]]

    def lines(self, pattern: str) -> int:
        """How many lines of the window match."""
        return len(re.findall(pattern, self.window(), re.MULTILINE))

    def number(self, pattern: str) -> int:
        """A number that a script printed: of several, the last one; 0 if there is none."""
        found = re.findall(pattern, self.text, re.MULTILINE)
        return int(found[-1]) if found else 0

    def gained(self, file: str, pattern: str) -> int:
        """How far a figure of the guest's went up; `pattern` has one group, and several matches are added."""
        values = [
            sum(int(one) for one in re.findall(pattern, self.said(f"{when} {file}"), re.MULTILINE))
            for when in ("before", "after")
        ]
        return values[1] - values[0]

    def field(self, file: str, begin: str, index: int) -> int:
        """The same for a word of a line, counted from 0."""
        first, last = (
            [line.split() for line in self.said(f"{when} {file}").splitlines() if line.startswith(begin)][-1]
            for when in ("before", "after")
        )
        return int(last[index]) - int(first[index])

    def event(self, name: str) -> int:
        """How often the guest's own tracing has seen an event."""
        return self.traced(rf" [\d.]+: {name}[:(]")

    def traced(self, pattern: str) -> int:
        """How many lines of the guest's own trace match."""
        return len(re.findall(pattern, self.trace, re.MULTILINE))

    def said(self, section: str) -> str:
        """What the guest printed behind a heading."""
        text = _KERNELS_OWN.sub("", self.console)
        return text.partition(f"={section}\n")[2].partition("\n=")[0]

    def _bounds(self, reading: str) -> tuple[str, str]:
        """The first fire of a probe at each of the two readings: the kernel may call its function several times."""
        found = [one[0] for one in re.finditer(rf"^<{reading}\n(?:.*\n)*?>$", self.text, re.MULTILINE)]
        if reading == "tracing":  # the first write switches it off before anything else
            return found[1], found[-1]
        return found[0], found[-1] if reading == "stat" else found[len(found) // 2]


def _rows(text: str, row: str) -> Counter[str]:
    return Counter(dict(_of(line.split()) for line in text.splitlines() if line.startswith(f"{row} ")))


def _of(words: list[str]) -> tuple[str, int]:
    """A key and its value: `row key... value`."""
    return " ".join(words[1:-1]), int(words[-1])


def rows(text: str, pattern: str) -> Iterator[tuple[str, ...]]:
    """The groups of each line that matches as a whole."""
    for found in re.finditer(rf"^{pattern}$", text, re.MULTILINE):
        yield found.groups()


def histogram(text: str, heading: str) -> dict[int, int]:
    """The rows of the first distribution with a heading that matches, and what was counted there."""
    found = re.search(rf"^{heading}\n +value  -+ Distribution -+ count *\n((?:.*\|.*\n)+)", text, re.MULTILINE)
    pairs = rows(found[1], r" *(-?\d+) \|@* *(\d+) *") if found else ()
    return {int(value): int(count) for value, count in pairs}
