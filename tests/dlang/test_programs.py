"""D programs, one file a rule, named by what is expected of them.

`tst.*.d` ends with status 0 and prints exactly its `.out`; `err.D_TAG.*.d` is refused with that tag. A comment in the
file may say how to run it:

    @options: -x strsize=16 -w        options of kinst-run; HERE is the program's folder, *.lib in it are libraries
    @arguments: one "two three"       $1, $2, ...
    @image: kernel [arm64 ...]        on the sample kernels of all three machines, or those named, with --clock icount
    @status: 3                        the exit status
    @input: -n                        the text is given with -n instead of -s (trailing newline removed)
    @says: line 4:                    what stderr must contain besides the tag

A file `.err` is what stderr must be. Without an image no time passes but for timers: the clock is --clock icount.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.cli import run
from kinst.runtime.dlang.options import Options

HERE = Path(__file__).parent
SAMPLES = HERE.parent.parent / "samples"
MACHINES = ("amd64", "arm64", "riscv64")
PROGRAMS = sorted(path for path in HERE.rglob("*.d") if path.parent.suffix != ".lib")


@dataclass(frozen=True, slots=True)
class Case:
    """One program on one machine, or on none."""

    path: Path
    machine: str | None

    @property
    def name(self) -> str:
        """As pytest shows it."""
        path = self.path.relative_to(HERE)
        return f"{path}" if self.machine is None else f"{path}-{self.machine}"


def directive(text: str, name: str) -> str:
    found = re.search(rf"@{name}:[ \t]*(.*)", text)
    return "" if found is None else found[1].removesuffix("*/").strip()


def cases() -> Iterator[Case]:
    for path in PROGRAMS:
        image, *machines = directive(path.read_text("latin-1"), "image").split() or [""]
        yield from (Case(path, machine) for machine in (machines or MACHINES if image else (None,)))


def command(case: Case) -> list[str]:
    text = case.path.read_text("latin-1")
    options = directive(text, "options").replace("HERE", str(case.path.parent))
    words = ["--clock", "icount", *shlex.split(options)]
    if directive(text, "input"):
        words += [directive(text, "input"), text.removesuffix("\n")]
    else:
        words += ["-s", str(case.path)]
    words.append("-" if case.machine is None else str(SAMPLES / f"kernel-{case.machine}.elf"))
    return words + shlex.split(directive(text, "arguments"))


def ran(case: Case) -> Result:
    return CliRunner().invoke(run, command(case), prog_name="kinst-run")


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_program(case: Case) -> None:
    kind, tag, *_ = case.path.name.split(".")
    if kind == "err":
        refused(case, tag)
        return
    assert kind == "tst", "a program is named tst.*.d or err.D_TAG.*.d"
    text = case.path.read_text("latin-1")
    result = ran(case)
    said = f"{result.stderr}\n{result.exception!r}"
    assert result.exit_code == int(directive(text, "status") or 0), said
    expected = case.path.with_suffix(f".{case.machine}.out")
    if not expected.exists():
        expected = case.path.with_suffix(".out")
    assert result.stdout_bytes == expected.read_bytes(), said
    errors = case.path.with_suffix(".err")
    if errors.exists():
        assert result.stderr == errors.read_text()


def refused(case: Case, tag: str) -> None:
    result = CliRunner().invoke(run, ["-x", "errtags", *command(case)], prog_name="kinst-run")
    assert (result.exit_code, result.stdout) == (1, ""), f"{result.stderr}\n{result.exception!r}"
    assert f"[{tag}]" in result.stderr, result.stderr
    assert directive(case.path.read_text("latin-1"), "says") in result.stderr, result.stderr


def test_there_are_many() -> None:
    assert len(PROGRAMS) >= 500


def test_every_tag_and_option_of_the_facts_has_a_program() -> None:
    facts = (HERE / "tags.txt").read_text().split()
    tested = {path.name.split(".")[1] for path in PROGRAMS if path.name.startswith("err.")}
    unreachable = set((HERE / "unreachable-tags.txt").read_text().split())
    assert set(facts) - tested == unreachable
    texts = "\n".join(path.read_text("latin-1") for path in PROGRAMS)
    assert not [name for name in Options.names() if name not in texts]
