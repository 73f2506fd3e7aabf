"""A drawn D program and how it is run: values whose parts can be dropped one by one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

COUNTED: Final = "@calls[probefunc] = count()"  # what is compared with the independent count
_FIRST: Final = {  # what gives each variable its type, where a program uses it
    **{name: f"{name} = (int64_t)0" for name in ("g0", "g1", "self->a", "self->b", "self->t", "self->sp", "this->x")},
    **{name: f'{name} = ""' for name in ("gs", "self->s", "this->w")},
    "arr[": "arr[(int64_t)0] = (int64_t)0",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause. `essential` ones are not dropped: what they count is compared with the independent count."""

    probes: tuple[str, ...]
    predicate: str
    statements: tuple[str, ...]
    is_essential: bool = False

    def text(self) -> str:
        """As D has it."""
        space = " " if self.predicate.startswith("*") else ""  # "/*" begins a comment
        predicate = f" /{space}{self.predicate}/" if self.predicate else ""
        return f"{', '.join(self.probes)}{predicate} {{ {' '.join(f'{one};' for one in self.statements)} }}"

    def smaller(self) -> Iterator["Clause"]:
        """The clause without one of its parts."""
        if self.is_essential:
            return
        if len(self.probes) > 1:
            yield from (
                replace(self, probes=(*self.probes[:at], *self.probes[at + 1 :])) for at in range(len(self.probes))
            )
        if self.predicate:
            yield replace(self, predicate="")
        if len(self.statements) > 1:
            for at in range(len(self.statements)):
                yield replace(self, statements=(*self.statements[:at], *self.statements[at + 1 :]))


@dataclass(frozen=True, slots=True)
class Program:
    """A program, the image it is for, and the words of its command line beside the program and the method."""

    image: str
    cpus: int
    words: tuple[tuple[str, ...], ...]  # options of kinst-run, each with its value
    clauses: tuple[Clause, ...]
    is_counting: bool = False  # all that it does at probes of the image is to count, at each under its own key

    def text(self) -> str:
        """As D has it, a clause a line, behind one that gives variables their types."""
        lines = [clause.text() for clause in self.clauses]
        whole = "\n".join(lines)
        typed = [f"{first};" for name, first in _FIRST.items() if name in whole]
        return "\n".join([f"BEGIN {{ {' '.join(typed)} }}", *lines] if typed else lines)

    def options(self) -> list[str]:
        """What the command line has beside image, method and program."""
        return [word for words in self.words for word in words]

    def smaller(self) -> Iterator["Program"]:
        """Programs with one part less, those that lose most first."""
        for at, clause in enumerate(self.clauses):
            if not clause.is_essential:
                yield replace(self, clauses=(*self.clauses[:at], *self.clauses[at + 1 :]))
        for at in range(len(self.words)):
            yield replace(self, words=(*self.words[:at], *self.words[at + 1 :]))
        if self.cpus > 1:
            yield replace(self, cpus=1)
        for at, clause in enumerate(self.clauses):
            for smaller in clause.smaller():
                yield replace(self, clauses=(*self.clauses[:at], smaller, *self.clauses[at + 1 :]))
