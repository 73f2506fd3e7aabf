"""The programs of tests/dlang that are refused -> for each tag of errors one that has it, and what is said of that."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from docs.generate.commands import ROOT
from kinst.runtime.cli import run
from tests.dlang.test_programs import Case, cases, command

_PROGRAMS: Final = ROOT / "tests" / "dlang"
_COMMENT: Final = re.compile(r"\A(?:#!.*\n)?\s*/\*(.*?)\*/\s*", re.DOTALL)
_LINE: Final = re.compile(r"\Aline [0-9]+: ")  # in the file, of which the comment is not shown
_DIRECTIVE: Final = re.compile(r"^[ *]*@\w+:.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A tag, the shortest program that has it, and the line that says why it is refused."""

    tag: str
    program: str
    message: str


def unreachable() -> list[str]:
    """Tags of DTrace's that nothing here can have."""
    return (_PROGRAMS / "unreachable-tags.txt").read_text().split()


def refusals() -> list[Refusal]:
    """One for each tag that a program can have."""
    shortest: dict[str, Case] = {}
    for case in sorted(cases(), key=_length):
        kind, tag, *_ = case.path.name.split(".")
        if kind == "err":
            shortest.setdefault(tag, case)
    return [_refusal(tag, case) for tag, case in sorted(shortest.items())]


def _length(case: Case) -> tuple[int, int, Path]:
    """How long a reader has to look at it: first those that need nothing but themselves."""
    text = case.path.read_text("latin-1")
    return len(_DIRECTIVE.findall(text)), len(text), case.path


def _refusal(tag: str, case: Case) -> Refusal:
    text = case.path.read_text("latin-1")
    comment = _COMMENT.match(text)
    said = CliRunner().invoke(run, ["-x", "errtags", *command(case)], prog_name="kinst-run").stderr
    message = _LINE.sub("", said.split(f"[{tag}] ")[1].splitlines()[0])
    return Refusal(tag, text[comment.end() if comment else 0 :].rstrip(), message)
