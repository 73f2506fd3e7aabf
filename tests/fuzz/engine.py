"""A kind, a seed and a time -> what was found: hypothesis draws and shrinks, in processes that may crash or hang."""

import contextlib
import faulthandler
import gc
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import hypothesis
from hypothesis import HealthCheck, Phase, settings, strategies

from kinst.rewriter.arch.registry import dissector
from kinst.targets.arch.registry import NAMES, arch_by_name
from tests.fuzz.kind import Hang, Kind, signature

_BATCH: Final = 200  # inputs of a process
_PATIENCE: Final = 12  # times as long as an input may compute, until a process is ended that does not answer
_IMPORTED_LATE = (
    *("lief", "capstone", "kinst.rewriter.diffing.diff_report", "kinst.rewriter.inlining.inlinecall_answer"),
    *("kinst.rewriter.list_command", "kinst.rewriter.rewrite_command"),
)
_LAST: Final = "last"  # file that holds the input of a process
_FORK: Final = multiprocessing.get_context("fork")


class Harm(StrEnum):
    """What an input can do."""

    TRACEBACK = "tracebacks"
    HANG = "hangs"
    MEMORY = "memory"
    CRASH = "crashes"
    LEFTOVER = "files left"


@dataclass(frozen=True, slots=True)
class Found:
    """A finding: the smallest input that does it, as its `repr`."""

    harm: Harm
    what: str
    input: str


@dataclass(slots=True)
class Report:
    """What came of one kind."""

    kind: str
    inputs: int = 0
    found: dict[str, Found] = field(default_factory=dict)  # by what findings of one defect have in common

    def count(self, harm: Harm) -> int:
        return sum(found.harm is harm for found in self.found.values())


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Hang in whatever computes for too long; on a busy machine others do, too."""

    def ring(_number: int, _frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def largest() -> int:
    """The most memory in megabytes that this process ever had; it begins with what it was forked with."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def tried(kind: Kind, value: Any, folder: Path, had: int) -> Found | None:
    """Do what the kind does with one input, and see what it did to this process, which had so many megabytes, and to
    the files around it."""
    place, around = folder / "own", folder / "around"
    (folder / _LAST).write_text(repr(value))
    place.mkdir()
    try:
        with limited(kind.seconds):
            kind.run(value, place)
    except Hang:
        return Found(Harm.HANG, f"more than {kind.seconds} s", repr(value))
    except Exception as error:
        return Found(Harm.TRACEBACK, signature(error), repr(value))
    finally:
        shutil.rmtree(place)
    left = sorted(path.name for path in around.iterdir())
    if left:
        return Found(Harm.LEFTOVER, f"left {left[0]}", repr(value))
    if largest() - had > kind.megabytes:
        return Found(Harm.MEMORY, f"more than {kind.megabytes} MB", repr(value))
    return None


class _Stop(AssertionError):
    """An input that is to be shrunk."""


class _Over(BaseException):
    """The time is over: no failure, and hypothesis draws no more inputs, which take longer than to run some of them."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What a process has to do until the clock is at `until`; of findings that are known it says nothing."""

    kind: Kind
    seed: int
    until: float
    known: frozenset[str]


def _batch(task: _Task, folder: Path, end: Connection) -> None:
    """Some inputs, in a process of its own; the first new finding is shrunk."""
    faulthandler.disable()  # what a crash leaves is the input
    os.chdir(folder / "around")
    os.environ.update(TMPDIR=str(folder / "around"), HOME=str(folder / "around"), XDG_CACHE_HOME=str(folder / "around"))
    tempfile.tempdir = None
    count, smallest, had = 0, list[Found](), largest()

    def one(value: Any) -> None:
        nonlocal count
        if count and not smallest and time.monotonic() > task.until:
            raise _Over
        count += 1
        found = tried(task.kind, value, folder, had)
        end.send(None)  # it lives
        if found is not None and found.what not in task.known and (not smallest or smallest[-1].what == found.what):
            smallest.append(found)
            raise _Stop(found.what)

    limits = settings(
        max_examples=_BATCH,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    with contextlib.suppress(_Stop, _Over, hypothesis.errors.HypothesisException, BaseExceptionGroup):
        hypothesis.seed(task.seed)(limits(hypothesis.given(task.kind.inputs)(one)))()
    end.send((count, smallest[-1:]))


def search(kind: Kind, seed: int, seconds: float) -> Report:
    """Fuzz one kind for so long; batch after batch, each from a seed that follows from `seed`."""
    _prepare()
    report, until = Report(kind.name), time.monotonic() + seconds
    while time.monotonic() < until:
        _add_batch(_Task(kind, seed, until, frozenset(report.found)), report)
        seed += 1
    return report


@cache
def _prepare() -> None:
    """What each process would do again: commands import what they need when they run, hypothesis reads our sources for
    constants, dissectors make their tables."""
    for name in _IMPORTED_LATE:
        import_module(name)
    settings(max_examples=1, database=None)(hypothesis.given(strategies.integers())(lambda _value: None))()
    for name in NAMES:
        dissector(arch_by_name(name))


def _add_batch(task: _Task, report: Report) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "around").mkdir()
        mine, its = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=_batch, args=(task, folder, its))
        process.start()
        its.close()
        found = _outcome(mine, report, _PATIENCE * task.kind.seconds)
        if found is not None:
            process.kill()
        process.join()
        if found is not None:
            what = found.what if process.exitcode in (0, -signal.SIGKILL) else f"signal {-(process.exitcode or 0)}"
            last = (folder / _LAST).read_text() if (folder / _LAST).exists() else ""
            report.found.setdefault(what, replace(found, what=what, input=last))


def _outcome(mine: Connection, report: Report, patience: float) -> Found | None:
    """Listen to a batch until it is over; something where it did not come to its end."""
    while True:
        if not mine.poll(patience):
            return Found(Harm.HANG, f"no answer in {patience} s", "")
        try:
            message = mine.recv()
        except EOFError:
            return Found(Harm.CRASH, "crash", "")
        if message is not None:
            count, found = message
            report.inputs += count
            report.found.update((one.what, one) for one in found)
            return None


def searched(kinds: list[Kind], seed: int, seconds: float, jobs: int) -> Iterator[Report]:
    """Fuzz several kinds, `jobs` at a time, for so long altogether."""
    _prepare()
    each = seconds * jobs / len(kinds)
    waiting, running = list(kinds), list[tuple[Connection, Any]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mine, its = _FORK.Pipe(duplex=False)
            process = _FORK.Process(target=_send, args=(waiting.pop(0), seed, each, its))
            process.start()
            its.close()
            running.append((mine, process))
        ready = multiprocessing.connection.wait([mine for mine, _ in running])
        for mine, process in [pair for pair in running if pair[0] in ready]:
            running.remove((mine, process))
            yield mine.recv()
            process.join()


def _send(kind: Kind, seed: int, seconds: float, end: Connection) -> None:
    gc.freeze()  # what was there before is never garbage: it would be copied for each process to look at it
    end.send(search(kind, seed, seconds))
