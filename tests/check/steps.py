"""The steps of a check -> what each took: its time, and the computing of it and of all that it started."""

import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Step:
    """A command; `words` has no shell in it."""

    name: str
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # besides what there is

    @classmethod
    def of(cls, name: str, task: str | Mapping[str, object], more: Sequence[str] = ()) -> "Step":
        """A task of poe that is one command, and what follows it."""
        given = {"cmd": task} if isinstance(task, str) else task
        environment = given.get("env", {})
        assert isinstance(environment, Mapping)
        return cls(name, (*shlex.split(str(given["cmd"])), *more), environment)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a step came to."""

    name: str
    status: int
    seconds: float
    computing: float  # seconds, of all processes that it waited for


@dataclass(frozen=True, slots=True)
class _Running:
    step: Step
    lane: Iterator[Step]
    process: subprocess.Popen[bytes]
    output: Path | None  # None: the step has the terminal
    since: float

    def ended(self) -> Cost:
        """Show what it said, unless everybody saw it."""
        _, status, usage = os.wait4(self.process.pid, 0)
        if self.output is not None:
            print(self.output.read_text(errors="replace"), end="", flush=True)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        computing = usage.ru_utime + usage.ru_stime
        return Cost(self.step.name, self.process.returncode, time.monotonic() - self.since, computing)


def carried_out(stages: Iterable[Sequence[Sequence[Step]]]) -> Iterator[Cost]:
    """Stage after stage; of each, all lanes beside each other, and the steps of a lane one after the other. Nothing is
    started after a step that failed, and what runs beside it is ended."""
    for lanes in stages:
        for cost in _stage(lanes):
            yield cost
            if cost.status:
                return


def _stage(lanes: Sequence[Sequence[Step]]) -> Iterator[Cost]:
    running = dict[int, _Running]()  # by a descriptor that can be read when the process has ended
    with tempfile.TemporaryDirectory() as folder, _ended(running):
        waiting = [iter(lane) for lane in lanes]
        while waiting or running:
            for lane in waiting:
                if (step := next(lane, None)) is not None:
                    started = _started(step, lane, Path(folder) if len(lanes) > 1 else None)
                    running[os.pidfd_open(started.process.pid)] = started
            waiting.clear()
            for descriptor in select.select([*running], [], [])[0] if running else ():
                done = running.pop(descriptor)
                os.close(descriptor)
                waiting.append(done.lane)
                yield done.ended()


@contextmanager
def _ended(running: Mapping[int, _Running]) -> Iterator[None]:
    """Who leaves early, with Ctrl-C or by a step that failed, leaves nothing running."""
    try:
        yield
    finally:
        for descriptor, left in running.items():
            os.close(descriptor)
            left.process.terminate()
            left.process.wait()


def _started(step: Step, lane: Iterator[Step], folder: Path | None) -> _Running:
    """Of several at a time, what each says goes into `folder` until it is done: their lines would be mixed."""
    print(f"$ {shlex.join(step.words)}", flush=True)
    environment, since = os.environ | step.environment, time.monotonic()
    if folder is None:
        return _Running(step, lane, subprocess.Popen(step.words, cwd=ROOT, env=environment), None, since)
    output = folder / step.name
    with output.open("wb") as file:
        process = subprocess.Popen(step.words, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT)
    return _Running(step, lane, process, output, since)
