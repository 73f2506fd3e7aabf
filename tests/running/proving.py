"""A program and ways to probe it -> whether it does the same with each, and what was patched and ran."""

import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from kinst.targets.errors import KinstError
from tests.running.bisecting import culprits
from tests.running.comparing import Ran, Result, run
from tests.running.inputs import SCRIPTS
from tests.running.patching import Addresses, Patched, Way, patched, site_name
from tests.running.program import Case, Program
from tests.running.sandbox import WORK, missing
from tests.running.sysroot import sysroot


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program is run: its root, and the files to be patched, by their paths in there."""

    root: Path
    built: Path
    originals: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a program and a way. `differences` are cases and what was not the same in each; `failures` say why
    nothing could be compared; `blamed` are the sites that are found to be the cause."""

    program: str
    way: str
    sites: int = 0
    hit: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    differences: tuple[tuple[Case, str], ...] = ()
    failures: tuple[str, ...] = ()
    blamed: tuple[str, ...] = ()
    seconds: float = 0

    @property
    def is_same(self) -> bool:
        """Whether all held."""
        return not self.differences and not self.failures

    def verdict(self) -> str:
        """In a few words."""
        told = [
            f"{len(self.differences)} of {self.cases} differ: {case}: {what}" for case, what in self.differences[:1]
        ]
        return "; ".join([*self.failures, *told]) or "the same"


@contextmanager
def placed(program: Program) -> Iterator[Place]:
    """The root of a program, and what must be compiled. Raises LookupError: packages or files that there are not."""
    root = sysroot(program.machine, program.suite, program.packages)
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder)
        for source in program.sources:
            _compile(program.triplet, SCRIPTS / source, built)
        yield Place(root, built, dict(_originals(program, root, built)))


def _compile(triplet: str, source: Path, built: Path) -> None:
    compiler = f"{triplet}-{'g++' if source.suffix == '.cpp' else 'gcc'}"
    if shutil.which(compiler) is None:
        raise LookupError(f"{compiler} is not installed")
    subprocess.run([compiler, "-O2", "-o", built / source.stem, source, "-lm"], check=True)


def _originals(program: Program, root: Path, built: Path) -> Iterator[tuple[str, Path]]:
    for pattern in program.files:
        where, _, name = pattern.partition(f"{WORK}/")
        if not where:
            yield pattern, built / name
            continue
        found = {path.resolve() for path in root.glob(pattern[1:])}
        if not found:
            raise LookupError(f"{pattern}: no such file in the packages")
        yield from (("/" + str(path.relative_to(root.resolve())), path) for path in sorted(found))


class Proving:
    """A program in its place, which is run without patches first."""

    def __init__(self, program: Program, place: Place) -> None:
        self._program, self._place = program, place
        self._plain = self._run({}).results

    def unable(self) -> list[str]:
        """Cases that do nothing: they would tell nothing."""
        pairs = zip(self._program.cases, self._plain, strict=True)
        return [
            f"{case}: {plain.stderr[-200:].decode(errors='replace')}" for case, plain in pairs if plain.status == 127
        ]

    def prove(self, way: Way, *, is_bisected: bool) -> Outcome:
        """Everything that is said of a way."""
        start, name = time.perf_counter(), self._program.name
        with tempfile.TemporaryDirectory() as folder:
            try:
                made = self._patched(Path(folder), way)
                ran = self._run(made)
            except (KinstError, TimeoutError) as problem:
                return Outcome(name, way.name, failures=(str(problem),), seconds=time.perf_counter() - start)
        differences = self._differences(ran.results)
        failures = [
            f"{where}: nothing of it ran" for where, one in made.items() if not ran.seen.processes.get(one.path)
        ]
        failures += self._unsteady() if differences else []
        blamed = self._blamed(way, made, differences[0][0]) if is_bisected and differences and not failures else ()
        sites, hit = sum(len(one.manifest.sites) for one in made.values()), _hit(ran)
        refused = sum((one.refused for one in made.values()), Counter[str]())
        numbers = sites, hit, refused, len(self._program.cases)
        found = differences, tuple(failures), tuple(blamed)
        return Outcome(name, way.name, *numbers, *found, time.perf_counter() - start)

    def _unsteady(self) -> list[str]:
        """Cases that differ without patches, too, in another run at other addresses: they tell nothing."""
        again = self._differences(self._run({}, is_random=True).results)
        return [f"{case}: differs by itself: {what}" for case, what in again]

    def _patched(self, folder: Path, way: Way, only: Mapping[str, Addresses] | None = None) -> dict[str, Patched]:
        """The files, or some of them with some sites."""
        wanted = self._place.originals if only is None else only
        return {
            where: patched(
                self._place.originals[where], folder / str(number), way, None if only is None else only[where]
            )
            for number, where in enumerate(wanted)
        }

    def _run(self, made: Mapping[str, Patched], last: Case | None = None, *, is_random: bool = False) -> Ran:
        """The cases, up to one."""
        ran = Ran()
        for case, result, ended in run(self._program, self._place.root, self._place.built, made, is_random=is_random):
            ran.add(result, ended)
            if case is last:
                break
        return ran

    def _differences(self, results: Sequence[Result]) -> tuple[tuple[Case, str], ...]:
        found = (
            (case, plain.difference(result))
            for case, plain, result in zip(self._program.cases, self._plain, results, strict=False)
        )
        return tuple((case, what) for case, what in found if what)

    def _blamed(self, way: Way, made: Mapping[str, Patched], case: Case) -> Iterator[str]:
        """The sites that make a case differ, of the first file that does so alone."""
        row = self._program.cases.index(case)

        def fails(where: str, sites: Addresses) -> bool:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    ran = self._run(self._patched(Path(folder), way, {where: sites}), case)
                except TimeoutError:
                    return True
                except KinstError:
                    return False  # none of them can be a jump without the others
            return bool(self._plain[row].difference(ran.results[row]))

        for where, one in made.items():
            sites = one.manifest.sites["address"].copy()
            if fails(where, sites):
                for part in culprits(sites, partial(fails, where)):
                    named = ", ".join(site_name(one.manifest, int(site)) for site in part[:4])
                    yield f"{where}: {named}" + (f" and {len(part) - 4:,} more together" if len(part) > 4 else "")
                return


def _hit(ran: Ran) -> int:
    return sum(int(np.count_nonzero(counters)) for counters in ran.seen.counters.values())


def prove_program(program: Program, ways: Sequence[Way], *, is_bisected: bool) -> Iterator[Outcome]:
    """A program with each way, as it is done."""
    if why := missing(program.machine):
        yield Outcome(program.name, "", failures=(why,))
        return
    try:
        with placed(program) as place:
            proving = Proving(program, place)
            if found := proving.unable():
                yield Outcome(program.name, "plain", failures=tuple(found))
                return
            for way in ways:
                yield proving.prove(way, is_bisected=is_bisected)
    except (LookupError, TimeoutError, subprocess.CalledProcessError) as problem:
        yield Outcome(program.name, "", failures=(f"{type(problem).__name__}: {problem}",))
