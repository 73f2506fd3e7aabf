"""`poe agree`: programs drawn by seed print the same whatever way their hits take; exit status 1 if one does not.

    python -m tests.agree [--programs N] [--seed S] [--first K] [--images NAME...] [--methods NAME...] [--linux]
    python -m tests.agree --engines [--programs N] ...

Each program runs under `--clock icount` by each method that accepts it, and what it prints of calls is compared with an
independent count. One that differs is made small, and printed with the command line that repeats it. At the end: what
the programs had in them. With --engines each program runs in our machine and under QEMU (`kinst-run --on`), on the
sample kernels: it asks for no time, and where its output depends on the time all the same it counts as refused.
"""

import argparse
import gc
import multiprocessing
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.agree.comparing import Agreement, compared
from tests.agree.coverage import Coverage
from tests.agree.drawing import drawn
from tests.agree.engines import ENGINES, compared_engines, words_by
from tests.agree.places import LINUX, NAMES, SMALL
from tests.agree.program import Program
from tests.agree.running import METHODS, words_of
from tests.agree.shrinking import shrunk
from tests.agree.steady import drawn_steady
from tests.agree.subjects import entries_of, subject
from tests.system.cases import SAMPLES

KERNELS: Final = tuple(case.image for case in SAMPLES)
_FORK: Final = multiprocessing.get_context("fork")
_BATCH: Final = 10  # programs that a process is given at a time
# A kernel that patches itself takes another number of instructions for that with `block` (docs/guide/cost.md).
_ON_LINUX: Final = (("trap", "auto", "emulate"), ("trap", "auto"), ("trap", "auto"))


@dataclass(frozen=True, slots=True)
class Task:
    """Some programs of an image."""

    image: str
    seed: int
    numbers: range
    methods: tuple[str, ...]

    def program(self, number: int) -> Program:
        """The program of this number."""
        draw = drawn_steady if self.methods == ENGINES else drawn
        return draw(self.seed, number, subject(self.image))

    def compared(self, program: Program, methods: tuple[str, ...]) -> Agreement:
        """Run one by each of these methods, or by both engines."""
        return compared_engines(program) if self.methods == ENGINES else compared(program, methods)

    def words(self, program: Program, method: str) -> list[str]:
        """The command line of a run."""
        return words_by(method, program) if self.methods == ENGINES else words_of(program, method)


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a task: programs that ran and that were refused, and what differed, as text."""

    ran: int
    refused: tuple[str, ...]
    differences: tuple[str, ...]
    coverage: Coverage


def done(task: Task) -> Done:
    """Run its programs."""
    ran, refused, differences, coverage = 0, list[str](), list[str](), Coverage()
    for number in task.numbers:
        program = task.program(number)
        agreement = task.compared(program, task.methods)
        if not agreement.ran and not agreement.differences:
            refused.append(f"{task.image} {number}: {agreement.outcomes[0][1].errors[-300:].strip()}")
            continue
        ran += 1
        coverage.add(program, agreement)
        if agreement.differences:
            differences.append(_told(task, number, program, agreement))
    return Done(ran, tuple(refused), tuple(differences), coverage)


def _told(task: Task, number: int, program: Program, agreement: Agreement) -> str:
    """A difference, its smallest program, and how to repeat it."""
    between = agreement.differences[0].between
    methods = tuple(method for method in between if method != "count")

    def fails(smaller: Program) -> bool:
        found = task.compared(smaller, methods)
        return found.ran and any(one.between == between for one in found.differences)

    small = shrunk(program, fails)
    left = task.compared(small, methods)
    engines = " --engines" if task.methods == ENGINES else ""
    again = f"python -m tests.agree{engines} --images {task.image} --seed {task.seed} --first {number} --programs 1"
    method = between[1] if between[1] != "standalone" else "auto"
    every = ", ".join(f"{one.between[0]}/{one.between[1]}" for one in agreement.differences)
    return "\n".join(
        [
            f"{task.image} {number}: differs: {every}",
            f"  {again}",
            f"  {shlex.join(['kinst-run', *task.words(small, method)])}",
            *(f"  {line}" for one in left.differences for line in one.text.splitlines()),
        ]
    )


def tasks(given: argparse.Namespace) -> Iterator[Task]:
    """All programs in batches, the images in turns; those of Linux one by one."""
    last, at = given.first + given.programs, given.first
    while at < last:
        size = 1 if given.is_large else _BATCH
        image = given.images[at // size % len(given.images)]
        methods = given.methods or (_ON_LINUX[at // len(given.images) % len(_ON_LINUX)] if image in LINUX else METHODS)
        yield Task(image, given.seed, range(at, min(at // size * size + size, last)), tuple(methods))
        at = at // size * size + size


def all_done(given: argparse.Namespace) -> Iterator[Done]:
    """Run all tasks, some at a time. Images are read before processes fork; what is read is never garbage, and would be
    looked at in each run."""
    for image in given.images:
        for cpus in (1, 2):
            subject(image)
            entries_of(image, cpus)
    gc.collect()
    gc.freeze()
    try:
        yield from _in_processes(given)
    finally:
        gc.unfreeze()


def _in_processes(given: argparse.Namespace) -> Iterator[Done]:
    if given.jobs == 1:
        yield from map(done, tasks(given))
        return
    with _FORK.Pool(given.jobs, maxtasksperchild=20) as pool:
        yield from pool.imap_unordered(done, tasks(given))


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="poe agree", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--programs", type=int, default=200, help="how many (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="where they start from (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first (default: 0)")
    known = ", ".join(NAMES)
    parser.add_argument("--images", nargs="+", choices=NAMES, help=f"default: those without Linux; known: {known}")
    parser.add_argument("--linux", action="store_true", help="Linux on three machines, each run of which takes seconds")
    parser.add_argument("--engines", action="store_true", help="sample kernels in our machine and under QEMU")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all that agree there")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no others after that time")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    given = parser.parse_args(words)
    given.images = given.images or [*(KERNELS if given.engines else LINUX if given.linux else SMALL)]
    if given.engines:
        if not {*given.images} <= {*KERNELS}:
            parser.error(f"--engines: is for {', '.join(KERNELS)}")
        given.methods = ENGINES
    given.is_large = any(image in LINUX for image in given.images)
    return given


def main() -> int:
    """Do what the command line says."""
    given, begun = parsed(), time.monotonic()
    ran, refused, found, coverage = 0, list[str](), 0, Coverage()
    for one in all_done(given):
        ran += one.ran
        print(f"{ran} of {given.programs}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        refused += one.refused
        found += len(one.differences)
        coverage.merge(one.coverage)
        for text in one.differences:
            print(text, flush=True)
        if time.monotonic() - begun > given.seconds:
            break
    print(coverage.table())
    for line in coverage.missing():
        print(f"never: {line}")
    for line in refused[:5]:
        print(f"refused: {line}")
    print(f"{ran:,} programs ran, {len(refused)} were refused, {found} differ; {time.monotonic() - begun:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
