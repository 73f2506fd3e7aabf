"""A program and a method -> what a run under it printed, and how its hits were delivered."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from click import Command
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run as kinst_run
from tests.agree.places import place
from tests.agree.program import Program

BREAKPOINTS: Final = ("trap", "auto", "emulate", "block")  # the first is what others are compared with
JUMPS: Final = ("jump", "standalone")
METHODS: Final = (*BREAKPOINTS, *JUMPS)
_EXPLAINED: Final = re.compile(
    r"kinst-run: (?:.*: hits are |at [\d,]+ of [\d,]+ sites hits are |hits are dispatched everywhere|of all these, )"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: exit status, standard output with the guest's console in it, and standard error."""

    status: int
    output: str
    errors: str
    explained: tuple[str, ...] = ()  # lines of -x explain

    @property
    def printed(self) -> tuple[int, str, str]:
        """What is the same with every method."""
        return self.status, self.output, self.errors

    @property
    def is_refused(self) -> bool:
        """Whether nothing ran: the program is wrong, or the method cannot do it."""
        return (
            self.status in (1, 2)
            and re.search(r"^kinst-run: ", self.errors, re.MULTILINE) is not None
            and not self.output
        )


def words_of(program: Program, method: str) -> list[str]:
    """The command line behind `kinst-run`."""
    at = place(program.image)
    words = ["--clock", "icount", "--cpus", str(program.cpus), *at.words, *program.options(), "-n", program.text()]
    given = frozenset(words[0] for words in program.words)
    method_words = [] if method == "standalone" else ["--method", method]
    return [*words, *method_words, *at.ends(given), str(at.path)]


def ran(program: Program, method: str) -> Outcome:
    """Run it in this process, by the command."""
    if method == "standalone":
        return _alone(program)
    return invoked(kinst_run, [*words_of(program, method), "-x", "explain"])


def _alone(program: Program) -> Outcome:
    """As an image that counts by itself, which is run and read when it stops."""
    *words, image = words_of(program, "standalone")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{program.image}.elf"
        wanted = [
            word for clause in program.clauses for one in clause.probes if ":" in one for word in ("--probe", one)
        ]
        made = invoked(rewrite, ["--standalone", *wanted, image, "-o", str(path)])
        if made.status:
            return made
        return invoked(kinst_run, [*words, str(path)])


def invoked(command: Command, words: Sequence[str]) -> Outcome:
    """Run a command in this process."""
    result = CliRunner().invoke(command, [*words], prog_name="kinst-run")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    lines = result.stderr.splitlines(keepends=True)
    kept = "".join(line for line in lines if not _EXPLAINED.match(line))
    told = tuple(line.removeprefix("kinst-run: ").rstrip("\n") for line in lines if _EXPLAINED.match(line))
    return Outcome(result.exit_code, result.stdout, kept, told)
