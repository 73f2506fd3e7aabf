"""Requests on standard input -> answers on standard output: a process that has everything imported, and forks for each
task.

So a task has a process of its own, which may crash, hang or take too much memory, and begins at once. It ends with this
process, and this one with the one that started it.
"""

import ctypes
import gc
import os
import pickle
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from kinst.runtime.batch.frames import receive, send
from kinst.runtime.batch.performing import perform
from kinst.runtime.batch.rows import Answer, Outcome, failure
from kinst.runtime.batch.tasks import Places, Task
from kinst.targets.signals import exit_on_termination
from kinst.targets.values import dataclass

_TICK: Final = 0.05  # seconds between two checks of a task's memory
_PIECE: Final = 1 << 16
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a task: seconds, and bytes of memory; None: no limit."""

    seconds: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A task, and where its files are."""

    task: Task
    places: Places
    limits: Limits


@dataclass(frozen=True, slots=True)
class _Result:
    """What a task's process sends: the answer, and the modules that it had to import."""

    answer: Answer
    imported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Process:
    """A forked process, and the pipe that its answer comes from."""

    number: int
    answers: int

    def kill(self) -> None:
        """Kill it, and all processes that it has started."""
        for kill, number in ((os.killpg, self.number), (os.kill, self.number)):
            try:
                kill(number, signal.SIGKILL)
            except ProcessLookupError:  # it has no group of its own yet, or is over
                continue


def serve(requests: int, answers: int) -> None:
    """Perform one request after the other, until there are no more. The arguments are file descriptors."""
    while (request := receive(requests)) is not None:
        send(answers, _performed(request, requests))


def _performed(request: Request, requests: int) -> Answer:
    folder = tempfile.mkdtemp(prefix="kinst-batch-")
    try:
        process = _forked(request, Path(folder))
        content, why = _collected(process, request.limits, requests)
        os.close(process.answers)
        _, status, usage = os.wait4(process.number, 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result = _result(request.task, content, why, status)
    _import(result.imported)
    return replace(result.answer, seconds=usage.ru_utime + usage.ru_stime, megabytes=usage.ru_maxrss >> 10)


def _forked(request: Request, folder: Path) -> _Process:
    ours, theirs = os.pipe()
    number = os.fork()
    if number == 0:
        _run_task(request, folder, theirs)
    os.close(theirs)
    return _Process(number, ours)


def _run_task(request: Request, folder: Path, answers: int) -> NoReturn:
    """The forked process. Whatever happens, it ends here."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()  # a process group of its own: `_Process.kill` also reaches what the task starts, such as readelf
        _end_with_parent()
        tempfile.tempdir = str(folder)
        os.environ["TMPDIR"] = str(folder)
        os.chdir(folder)
        known = set(sys.modules)
        answer = perform(request.task, request.places, request.limits.seconds)
        send(answers, _Result(answer, tuple(sorted(set(sys.modules) - known))))
    finally:
        # Not sys.exit(): the exit handlers and the buffers that were inherited are the parent's to run and to flush.
        os._exit(0)


def _end_with_parent() -> None:
    """On Linux, let the process be killed when the one that forked it ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _collected(process: _Process, limits: Limits, requests: int) -> tuple[bytes, tuple[Outcome, str] | None]:
    """What a process sends, and why it was killed if it was."""
    end = None if limits.seconds is None else time.monotonic() + limits.seconds
    content = bytearray()
    while True:
        readable, _, _ = select.select([process.answers, requests], (), (), _TICK)
        if process.answers in readable:
            piece = os.read(process.answers, _PIECE)
            if not piece:
                return bytes(content), None
            content += piece
        elif readable:  # no request comes before the answer: this is the end of the pipe, and the parent is gone
            process.kill()
            sys.exit(0)
        why = _exceeded(process, limits, end)
        if why is not None:
            process.kill()
            return b"", why


def _exceeded(process: _Process, limits: Limits, end: float | None) -> tuple[Outcome, str] | None:
    if end is not None and time.monotonic() > end:
        return Outcome.TIMEOUT, f"took longer than {limits.seconds:g} s"
    if limits.memory is not None and _memory(process.number) > limits.memory:
        return Outcome.MEMORY, f"took more than {limits.memory >> 20:,} MiB"
    return None


def _memory(number: int) -> int:
    """The private memory of a process in bytes, on Linux; else 0. Pages of files do not count."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    found = (fields.get(name, "0").split() for name in ("RssAnon", "RssShmem", "VmSwap"))
    return sum(int(words[0]) << 10 for words in found)


def _result(task: Task, content: bytes, why: tuple[Outcome, str] | None, status: int) -> _Result:
    if why is not None:
        return _Result(failure(task, *why))
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return _Result(failure(task, Outcome.CRASHED, f"killed by {signal.Signals(number).name}"))
    try:
        result: _Result = pickle.loads(content[8:])  # after the length: a pickle has an end of its own
    except (EOFError, pickle.UnpicklingError):
        return _Result(failure(task, Outcome.CRASHED, "ended without an answer"))
    return result


def _import(names: Sequence[str]) -> None:
    """Import what a task had to import, so that the next ones need not: that saves each of them half a second."""
    for name in names:
        with suppress(Exception):  # then it is imported by each that needs it
            import_module(name)
    if names:
        gc.collect()
        gc.freeze()


def main() -> None:
    """Serve the process that has started this one. All other output goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_on_termination()
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    gc.collect()
    gc.freeze()  # what is imported stays: a collection in a forked process would write to its pages, and copy them
    try:
        serve(requests, answers)
    except BrokenPipeError:
        sys.exit(0)


if __name__ == "__main__":
    main()
