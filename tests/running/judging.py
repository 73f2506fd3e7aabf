"""The files of a program -> whether objdump sees an instruction begin at every site, and why it may not."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.targets.errors import KinstError
from kinst.targets.probe import parse_probe_names
from tests.boundaries import Stray, strays
from tests.running.program import Program
from tests.running.proving import placed

PROBES = "kinst:::,fbt:::"


@dataclass(frozen=True, slots=True)
class Judged:
    """A file: its sites; how many objdump does not confirm, by the reason why they are right all the same; and those
    for which there is none. `failure` says why it could not be judged."""

    file: str
    machine: str
    sites: int = 0
    excused: Counter[str] | None = None
    strays: tuple[Stray, ...] = ()
    failure: str = ""

    def verdict(self) -> str:
        """In a few words."""
        some = ", ".join(str(stray) for stray in self.strays[:4])
        told = f"{len(self.strays)} sites where no instruction begins: {some}" if self.strays else ""
        return self.failure or told or "confirmed"


def judge(program: Program) -> Iterator[Judged]:
    """Each file of a program, with all instructions and functions probed."""
    try:
        with placed(program) as place:
            for where, path in place.originals.items():
                yield _judged(where, path)
    except (LookupError, OSError) as problem:
        yield Judged(program.name, program.machine, failure=f"{type(problem).__name__}: {problem}")


def _judged(where: str, path: Path) -> Judged:
    opened = open_source(Source(path))
    machine = opened.image.facts.name
    try:
        sites = plan_probes(opened, parse_probe_names(PROBES))[1].manifest.sites
    except KinstError as problem:
        return Judged(where, machine, failure=str(problem))
    found = strays(opened.program, path, sites)
    excused = Counter(stray.reason for stray in found if stray.reason)
    return Judged(where, machine, len(sites), excused, tuple(stray for stray in found if not stray.reason))
