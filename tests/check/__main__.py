"""`poe check`: what CI runs. `poe check-changed`: the same of what changed, as fast as can be. Where the time went is
said at the end.

    python -m tests.check
    python -m tests.check --changed [--base main] [words for pytest]

--changed asks git what differs from --base, and runs the tests that can see it, by the imports of all modules; those
that are nearest to it come first, and the first that fails ends it. It does not fuzz. What it leaves out could fail all
the same (what a test reads is guessed by the names in its text): `poe check` is what decides.
"""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.check.changes import changed_files
from tests.check.imports import imports_of
from tests.check.selection import selected
from tests.check.steps import ROOT, Cost, Step, carried_out
from tests.docs.tasks import TASKS

Stages = Sequence[Sequence[Sequence[Step]]]
# The formatter and the linter say in a second what they have to say. The tests have two processes, and beside them mypy
# and a short fuzz run have a third: all end sooner when no processor waits for the end of a lane.
_QUICK: Final = ("lint-format", "lint", "imports")
_READING: Final = ("imports", "types")


def _steps(names: Iterable[str]) -> list[Step]:
    return [Step.of(name, TASKS[name]) for name in names]


def everything() -> Stages:
    """What CI runs."""
    typed = Step("types", (sys.executable, "-m", "tests.check.types", *shlex.split(TASKS["types"])))
    return [[_steps(_QUICK)], [[typed, *_steps(["fuzz-briefly"])], _steps(["test"])]]


def of_changes(base: str, more: Sequence[str]) -> Stages:
    """What tells soonest whether the changes are right.

    Raises:
        LookupError: git knows no such branch.
    """
    tests = selected(changed_files(ROOT, base), imports_of(ROOT))
    print(f"{len(tests)} files of tests can see what changed since {base}")
    chosen = [Step.of("test", TASKS["test"], ["-x", *more, *tests])] if tests else []
    return [[_steps(_QUICK[:2])], [chosen], [_steps([name]) for name in _READING]]


def table(costs: Sequence[Cost], seconds: float) -> str:
    """A line a step: seconds that passed, seconds of computing."""
    rows = [(cost.name, cost.seconds, cost.computing) for cost in costs]
    rows.append(("all", seconds, sum(cost.computing for cost in costs)))
    lines = [f"{name:<16}{passed:>8.1f}{computing:>10.1f}" for name, passed, computing in rows]
    return "\n".join([f"{'step':<16}{'seconds':>8}{'computing':>10}", *lines])


def main() -> int:
    """Do what the command line says; the status of the first step that failed."""
    parser = argparse.ArgumentParser(prog="poe check", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--changed", action="store_true", help="only what the changes can have broken")
    parser.add_argument("--base", default="main", help="the branch that they are measured from (default: main)")
    given, more = parser.parse_known_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    try:
        stages = of_changes(given.base, more) if given.changed else everything()
    except LookupError as error:
        parser.error(f"--base {given.base}: {error}")
    since = time.monotonic()
    costs = list(carried_out(stages))
    print(table(costs, time.monotonic() - since))
    return next((cost.status for cost in costs if cost.status), 0)


if __name__ == "__main__":
    sys.exit(main())
