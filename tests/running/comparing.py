"""A program -> its cases without and with patches, and where these differ."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np

from tests.running.inputs import write_inputs
from tests.running.patching import Patched
from tests.running.program import Case, Program
from tests.running.sandbox import Sandbox
from tests.running.watched import Counted, Ended, watch


@dataclass(frozen=True, slots=True)
class Result:
    """What a case has left behind: exit status, output, and the digests of its folder's files."""

    status: int
    stdout: bytes
    stderr: bytes
    files: Mapping[str, str]

    def difference(self, other: "Result") -> str:
        """What is not the same in another one; empty: nothing."""
        if self.status != other.status:
            last = other.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return " ".join([f"exit status {other.status}, not {self.status}:", *last])
        for name, one, two in (("stdout", self.stdout, other.stdout), ("stderr", self.stderr, other.stderr)):
            if one != two:
                return f"{name}: {_lines(one, two)}"
        names = [name for name in {*self.files, *other.files} if self.files.get(name) != other.files.get(name)]
        return f"files: {', '.join(sorted(names)[:4])}" if names else ""


def _lines(one: bytes, two: bytes) -> str:
    """The first that differ, and how many."""
    lines = zip_longest(one.splitlines(), two.splitlines(), fillvalue=b"(end)")
    found = [(was, now) for was, now in lines if was != now]
    if not found:
        return "ends of lines"
    was, now = (line[:120].decode(errors="replace") for line in found[0])
    return f"{now!r}, not {was!r}" + (f", and {len(found) - 1:,} more lines" if len(found) > 1 else "")


@dataclass(slots=True)
class Ran:
    """The cases of a program that were run: their results, and what the patched files counted in all of them."""

    results: list[Result] = field(default_factory=list)
    seen: Ended = field(default_factory=Ended)

    def add(self, result: Result, ended: Ended) -> None:
        """One more."""
        self.results.append(result)
        for path, counters in ended.counters.items():
            known = self.seen.counters.get(path, counters)
            self.seen.counters[path] = np.maximum(known, counters)
            self.seen.processes[path] = self.seen.processes.get(path, 0) + ended.processes[path]


def run(
    program: Program, root: Path, built: Path, instead: Mapping[str, Patched], *, is_random: bool = False
) -> Iterator[tuple[Case, Result, Ended]]:
    """Each case of a program as it is done, in one folder for all, with what is built for it. `instead`: path in the
    root -> what is there. `is_random`: as in `Sandbox`.

    Raises:
        TimeoutError: it does not come to an end.
    """
    counted = [Counted.of(one.path) for one in instead.values()]
    with _folder(built) as work:
        stand_in = {where: one.path for where, one in instead.items()}
        sandbox = Sandbox(root, work, program.machine, stand_in, is_random)
        for case in program.cases:
            stdin = None if case.stdin is None else work / case.stdin
            ended = watch(sandbox.start(case.command, case.environment, stdin), counted, program.seconds)
            stdout, stderr = (sandbox.output(name).read_bytes() for name in ("stdout", "stderr"))
            yield case, Result(ended.status, stdout, b"" if program.is_timed else stderr, _digests(work)), ended


@contextmanager
def _folder(built: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        write_inputs(work)
        for program in built.iterdir():
            shutil.copy(program, work / program.name)
        yield work


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
